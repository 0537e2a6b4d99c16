"""Executes parsers: their states, methods of `packet_in`, and `select`."""

from __future__ import annotations

from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.typed import CallInfo, CallKind, Instance
from p4native.verification.interpreter.context import Context, Rejected
from p4native.verification.interpreter.expressions import Expressions, OutOfBounds
from p4native.verification.interpreter.packet import Packet
from p4native.verification.interpreter.statements import Statements
from p4native.verification.interpreter.tables import Tables, keysets
from p4native.verification.interpreter.values import UnknownConstruct, VariableBits, from_bits

LENGTH_MAX_BITS = 2**31 - 1
"""The longest varbit. BMv2 uses its length as a signed number of 32 bits."""


class Parsers:
    """Runs the parsers of a program on the current packet."""

    packet: Packet

    def __init__(
        self, context: Context, expressions: Expressions, statements: Statements, tables: Tables
    ) -> None:
        self.context = context
        self.expressions = expressions
        self.statements = statements
        self.tables = tables
        self.program = context.program
        context.calls[CallKind.PARSER_APPLY] = self._apply

    def run(self, instance: Instance) -> None:
        """Runs state after state until `accept` is reached. Raises Rejected."""
        outer, self.context.instance = self.context.instance, instance
        declaration = instance.declaration
        assert isinstance(declaration, ast.ParserDeclaration)
        try:
            for each in declaration.locals:
                if isinstance(each, ast.Variable):
                    self.statements.declare(each)
            states = {state.name: state for state in declaration.states}
            name = "start"
            while name != "accept":
                if name == "reject":
                    raise Rejected(None)
                name = self._state(states[name])
        except OutOfBounds:
            raise Rejected(self.context.errors["StackOutOfBounds"]) from None
        finally:
            self.context.instance = outer

    def _apply(self, call: ast.Call, info: CallInfo) -> None:
        """Executes a parser that another parser calls. If the called parser rejects, its outputs
        are not copied."""
        instance = self._instance(call, info)
        given, outputs = self.statements.bind(info.arguments)
        self.statements.perform(given, outputs, lambda: self.run(instance))

    def _instance(self, call: ast.Call, info: CallInfo) -> Instance:
        if info.receiver is None:
            return self.context.instance.children[call]
        return self.context.object(info.receiver)

    def _state(self, state: ast.ParserState) -> str:
        """Executes a state and returns the name of the next one."""
        self.statements.run(state.statements)
        transition = state.transition
        if transition is None:
            return "reject"
        if transition.target is not None:
            return transition.target.name
        return self._select(transition)

    def _select(self, transition: ast.Transition) -> str:
        """Returns the state of the first case that matches. If no case matches, parsing ends
        without an error, as on BMv2."""
        keys = [self.expressions.value(each) for each in transition.subject]
        for case in transition.cases:
            sets = keysets(case.keyset, len(keys))
            if all(self.tables.predicate(s)(k) for s, k in zip(sets, keys, strict=True)):
                return case.target.name
        return "reject"

    # ---- packet_in

    def extern(self, call: ast.Call, info: CallInfo) -> Any:
        """Executes a method of `packet_in`."""
        arguments = [each.value for each in info.arguments]
        if info.method == "extract" and len(arguments) == 1:
            return self._extract(arguments[0])
        if info.method == "extract":
            assert arguments[1] is not None
            return self._extract(arguments[0], self.expressions.number(arguments[1]))
        if info.method == "lookahead":
            return self._lookahead(info.result)
        if info.method == "advance":
            assert arguments[0] is not None
            return self._advance(self.expressions.number(arguments[0]))
        if info.method == "length":
            return len(self.packet.frame)
        raise UnknownConstruct(f"{call.position}: calls of packet_in.{info.method}")

    def verify(self, info: CallInfo) -> None:
        """Executes `verify(condition, error)`, which rejects with the error if the condition does
        not hold."""
        condition, error = (each.value for each in info.arguments)
        assert condition is not None and error is not None
        if not self.expressions.value(condition):
            raise Rejected(self.expressions.value(error))

    def _need(self, bits: int) -> None:
        if self.packet.bits_left() < bits:
            raise Rejected(self.context.errors["PacketTooShort"])

    def _lookahead(self, kind: types.Type) -> Any:
        bits = types.width_bits(kind)
        assert bits is not None, "the checker has lookaheads be of a fixed width"
        self._need(bits)
        return from_bits(kind, bits, self.packet.ahead(bits))[0]

    def _advance(self, bits: int) -> None:
        if bits % 8:  # BMv2's parser moves by whole bytes
            raise Rejected(self.context.errors["ParserInvalidArgument"])
        self._need(bits)
        self.packet.at_bit += bits

    def _extract(self, target: ast.Expression | None, variable_bits: int | None = None) -> None:
        assert target is not None
        stack = self._stack(target)
        header = self.expressions.place(target).read()
        kind = header.type
        fixed = sum(types.width_bits(f.type) or 0 for f in kind.fields)
        if variable_bits is not None:
            self._check_length(kind, fixed, variable_bits)
        self._need(fixed + (variable_bits or 0))
        for each in kind.fields:
            self._field(header.fields, each, variable_bits)
        header.set_valid()
        if stack is not None:
            stack.next += 1

    def _stack(self, target: ast.Expression) -> Any:
        """Returns the header stack if the target is its `next` element; otherwise None."""
        if not isinstance(target, ast.Member) or target.member != "next":
            return None
        is_stack = isinstance(self.program.type_of[target.base], types.Stack)
        return self.expressions.place_of_stack(target.base) if is_stack else None

    def _check_length(self, kind: types.Header, fixed: int, bits: int) -> None:
        errors = self.context.errors
        if bits % 8 or bits > LENGTH_MAX_BITS:
            raise Rejected(errors["ParserInvalidArgument"])
        self._need(fixed + bits)
        room = next(f.type.width for f in kind.fields if isinstance(f.type, types.Varbit))
        if bits > room:
            raise Rejected(errors["HeaderTooShort"])

    def _field(self, fields: dict[str, Any], field: types.Field, variable_bits: int | None) -> None:
        if isinstance(field.type, types.Varbit):
            bits = variable_bits or 0
            fields[field.name] = VariableBits(bits, self.packet.ahead(bits))
        else:
            bits = types.width_bits(field.type) or 0
            fields[field.name], _ = from_bits(field.type, bits, self.packet.ahead(bits))
        self.packet.at_bit += bits
