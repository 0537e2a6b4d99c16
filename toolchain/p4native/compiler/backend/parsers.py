"""Lowers parsers: their states, operations and transitions. The states of a sub-parser are added to
those of the parser that applies it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from p4native.compiler import ast, types
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.control import block_arguments, block_bindings
from p4native.compiler.backend.effects import Effects
from p4native.compiler.backend.keysets import Choice, choices_of
from p4native.compiler.backend.parts import Parts
from p4native.compiler.backend.places import (
    ERROR_BITS,
    HeaderPlace,
    LastUnionMember,
    NextHeader,
    NextUnionMember,
    Place,
    Scalar,
    SelectedPlace,
    StackPlace,
    StructPlace,
    is_scalar,
    is_signed,
    scalar_width,
)
from p4native.compiler.backend.scope import Frame, Unit
from p4native.compiler.backend.storage import Unsupported
from p4native.compiler.source import Position
from p4native.compiler.typed import CallInfo, CallKind, Instance


@dataclass
class ParserFrame:
    """One parser that is being inlined, with its states. accept: the state to which the parser's
    `accept` leads, None for the end of parsing."""

    frame: Frame
    declaration: ast.ParserDeclaration
    accept: str | None
    names: dict[str, str] = field(default_factory=dict)


class SubParser(ir.Statement):
    """The application of a sub-parser in the code. Control goes to the state `start` and comes back
    to the state `resume`."""

    def __init__(self, position: Position, start: str, resume: str) -> None:
        super().__init__(position)
        self.start = start
        self.resume = resume


class ParserBody:
    """The part that lowers a parser into program.parser_states."""

    def __init__(self, unit: Unit, parser: ParserFrame) -> None:
        parts = Parts(unit, parser.frame)
        self.scope = parts.scope
        self.expressions = parts.expressions
        self.calls = parts.calls
        self.statements = parts.statements
        self.externs = parts.externs
        self.parser = parser
        self.label_states: dict[int, str] = {}
        self._bare_key = False
        self.scope.calls[CallKind.PARSER_APPLY] = self.parser_call
        self.scope.calls[CallKind.EXTERN_FUNCTION] = self._extern_call
        self.scope.calls[CallKind.EXTERN_METHOD] = self._extern_call
        self.scope.last_union_member = self._last_union_member

    # ------------------------------------------------------------------- parsers

    def run(self) -> str | None:
        """Lowers every reachable state and returns the name of the first one."""
        parser = self.parser
        reachable = self.scope.typed.parser_reachable.get(parser.declaration)
        states = [s for s in parser.declaration.states if reachable is None or s.name in reachable]
        for state in states:
            parser.names[state.name] = self.scope.unit.names.unique(self._state_name(state))
        start = parser.names.get("start")
        with self.scope.into([]) as initial:
            for declaration in parser.declaration.locals:
                if isinstance(declaration, ast.Variable):
                    self.statements.statement(declaration)
        if initial:
            start = self._initial_state(initial, start)
        for state in states:
            self._state(state)
        return start

    def _state_name(self, state: ast.ParserState) -> str:
        """Returns the name of a state in BMv2. States of the top parser keep their names. The name
        of a sub-parser's state begins with the path of the sub-parser."""
        if self.parser.frame.caller is None:
            return state.name
        return f"{self.parser.frame.prefix}.{state.name}"

    def _initial_state(self, code: list[ir.Statement], start: str | None) -> str:
        """Adds a state that sets the local variables and then goes to `start`. The variables are
        set only once, even if the parser comes back to `start`."""
        name = self.scope.unit.names.unique(f"{self.parser.frame.prefix}.locals")
        where = self.parser.declaration.position
        self._emit_states(name, where, code, [ir.Transition("default", start)], [])
        return name

    def _state(self, state: ast.ParserState) -> None:
        self.scope.position = state.position
        try:
            with self.scope.into([]) as code:
                self.statements.lower_statements(state.statements)
                keys, transitions = self._transition(state)
            self._emit_states(
                self.parser.names[state.name], state.position, code, transitions, keys
            )
        except Unsupported as problem:
            self.scope.unit.report(problem)

    def target(self, reference: ast.StateRef) -> str | None:
        """Returns the name of the state to which a transition goes, or None for the end of parsing.
        BMv2 has no reject, so `reject` also ends parsing and sets no error."""
        if reference.name == "accept":
            return self.parser.accept
        if reference.name != "reject":
            return self.parser.names[reference.name]
        self.scope.unit.diagnostics.warning(
            reference.position,
            "reject only ends the parser on BMv2: the packet goes on to ingress, without an error",
            "verify(false, error.X) sets parser_error, which ingress can look at",
            "unsupported",
        )
        return None

    # --------------------------------------------------------------- transitions

    def _transition(self, state: ast.ParserState) -> tuple[list[ir.Expr], list[ir.Transition]]:
        transition = state.transition
        if transition is None:
            return [], [ir.Transition("default", None)]
        self.scope.position = transition.position
        if transition.target is not None:
            return [], [ir.Transition("default", self.target(transition.target))]
        keys = [self._select_key(e) for e in transition.subject]
        widths = [self._key_width(e) for e in transition.subject]
        transitions = self._cases(transition, widths)
        if all(t.kind == "default" for t in transitions):
            keys = []
        return keys, transitions

    def _key_width(self, expression: ast.Expression) -> int:
        return scalar_width(self.expressions.operand_type(expression))

    def _select_key(self, expression: ast.Expression) -> ir.Expr:
        shape = self.expressions.operand_type(expression)
        if not is_scalar(shape):
            raise self.scope.unsupported(expression, f"a select key of type {shape}")
        is_cast = expression in self.scope.typed.implicit_cast
        self._bare_key = isinstance(expression, ast.Member) and not is_cast
        expr = arithmetic.as_data(self.expressions.value(expression))
        self._bare_key = False
        width = max(1, scalar_width(shape))
        if isinstance(expr, (ir.FieldRef, ir.LastField, ir.UnionLastField)) and expr.width == width:
            return expr
        bits = types.Bits(width)
        return self.expressions.keep(arithmetic.unsigned(expr, bits.width), bits)

    def _last_union_member(self, stack: StackPlace, name: str, where: ast.Member) -> Place:
        """Returns the place of `stack.last.member`. As a key of a select, it is a field of the last
        union. Elsewhere, the code searches for the last valid element."""
        if self._bare_key:
            return LastUnionMember(self.scope.type_of(where), stack, name)
        return self.expressions.last_union_member(stack, name, where)

    def _cases(self, transition: ast.Transition, widths: Sequence[int]) -> list[ir.Transition]:
        transitions: list[ir.Transition] = []
        for case in transition.cases:
            following = self.target(case.target)
            for choice in choices_of(self.expressions, case.keyset, widths):
                transitions.append(self._case(choice, widths, following))
                if transitions[-1].kind == "default":
                    return transitions
        return transitions

    def _case(self, choice: Choice, widths: Sequence[int], following: str | None) -> ir.Transition:
        if choice.value_set is not None:
            return ir.Transition("parse_vset", following, choice.value_set)
        if all(mask == 0 for _, mask in choice.parts):
            return ir.Transition("default", following)
        value = mask = 0
        whole = True
        for (part, part_mask), width in zip(choice.parts, widths, strict=True):
            padded = 8 * ((width + 7) // 8)
            value, mask = value << padded | part, mask << padded | part_mask
            whole = whole and part_mask == arithmetic.mask(width)
        return ir.Transition("hexstr", following, value, None if whole else mask)

    # ------------------------------------------------------------------- calls

    def parser_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        instance = self.scope.called_instance(call, info)
        declaration = instance.declaration
        assert isinstance(declaration, ast.ParserDeclaration)
        prefix = self.scope.unit.names.unique(instance.name)
        frame = Frame(
            instance,
            "parser",
            prefix,
            caller=self.scope.frame,
            bindings=block_bindings(instance),
        )
        self.calls.enter(frame, block_arguments(instance, info), Effects())
        resume = self.scope.unit.names.unique(f"{prefix}.resume")
        sub = ParserFrame(frame, declaration, resume)
        start = ParserBody(self.scope.unit, sub).run()
        if start is None:
            raise self.scope.unsupported(call, "a parser without a start state")
        self.scope.code.append(SubParser(self.scope.position, start, resume))
        self.calls.copy_out(frame)
        return None

    def _extern_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        if info.kind is CallKind.EXTERN_METHOD and info.target is not None:
            handlers = {
                "extract": self._extract,
                "lookahead": self._lookahead,
                "advance": self._advance,
            }
            receiver = info.receiver
            assert receiver is not None
            shape = self.scope.type_of(receiver)
            if isinstance(shape, types.Extern) and shape.name == "packet_in":
                if info.method not in handlers:
                    raise self.scope.unsupported(call, f"packet_in.{info.method}")
                return handlers[info.method](call, info)
        if info.method == "verify":
            condition, error = (
                self.expressions.value(self.externs.argument(info, 0)),
                self.expressions.value(self.externs.argument(info, 1)),
            )
            self.scope.emit("verify", condition, error)
            return None
        return self.externs.extern_call(call, info)

    def _extract(self, call: ast.Call, info: CallInfo) -> None:
        argument = info.arguments[0].value
        if argument is None:
            width = types.width_bits(types.substitute(info.arguments[0].parameter.type, {}))
            if width is None:
                raise self.scope.unsupported(call, "extract(_) of a header of this type")
            self.scope.emit("advance", ir.Const(width, 32))
            return
        place = self.expressions.place(argument)
        if isinstance(place, HeaderPlace) and place.stack is not None:
            place = self._found_header(place, place.stack)
        length = (
            self.expressions.value(self.externs.argument(info, 1))
            if len(info.arguments) > 1
            else None
        )
        if isinstance(place, SelectedPlace):
            self._extract_selected(place, length)
        else:
            self._extract_to(place, length)

    def _found_header(self, place: HeaderPlace, stack: StackPlace) -> SelectedPlace:
        """Returns the element that `stack[i]` picks, as a choice among all elements, because BMv2
        only extracts to constant targets."""
        assert isinstance(place.expr, ir.Op)
        index = self.expressions.keep(place.expr.right, types.BIT32)
        return SelectedPlace(place.type, index, stack.elements)

    def _extract_selected(self, place: SelectedPlace, length: ir.Expr | None) -> None:
        """Emits an extraction for each element of which the index chooses one at run time. An index
        beyond the last element is an error, as it is with `next`."""
        if length is not None and not isinstance(length, ir.Const):
            length = self.expressions.keep(length, types.BIT32)
        with self.scope.into([]) as outside:
            self.scope.emit("verify", arithmetic.FALSE, self._error_number("StackOutOfBounds"))
        self.expressions.select_code(place, lambda one: self._extract_to(one, length), outside)

    def _error_number(self, name: str) -> ir.Const:
        codes = {member.name: code for member, code in self.scope.typed.error_codes.items()}
        return ir.Const(codes.get(name, 0), ERROR_BITS)

    def _extract_to(self, place: Place, length: ir.Expr | None) -> None:
        operands: list[ir.Expr]
        if isinstance(place, NextHeader):
            operands = [ir.ObjectRef("stack", place.stack.name)]
        elif isinstance(place, NextUnionMember):
            stack = ir.ObjectRef("union_stack", place.stack.name)
            operands = [stack, ir.ObjectRef("member", place.member)]
        elif isinstance(place, HeaderPlace) and place.name is not None:
            operands = [ir.ObjectRef("regular", place.name)]
        else:
            raise Unsupported(self.scope.position, "extracting to this header")
        if length is None:
            self.scope.emit("extract", *operands)
        else:
            self.scope.emit("extract_VL", *operands, length)

    def _advance(self, call: ast.Call, info: CallInfo) -> None:
        self.scope.emit("advance", self.expressions.value(self.externs.argument(info, 0)))

    def _lookahead(self, call: ast.Call, info: CallInfo) -> Place:
        shape = types.substitute(info.result, self.scope.frame.bindings)
        target = self.scope.temporary(shape)
        with self.scope.into([]) as reading:
            width = self._look(target, shape, 0, call)
        if not isinstance(target, Scalar):
            # BMv2 asks only whether a lookahead's own bytes are there, whatever its offset is.
            whole = self.scope.temporary(types.Bits(width))
            assert isinstance(whole, Scalar)
            self.scope.emit("assign", whole.ref, ir.Lookahead(0, width))
        self.scope.code.extend(reading)
        return target

    def _look(self, target: Place, shape: types.Type, offset: int, where: ast.Node) -> int:
        """Fills `target` with the bits of the packet from `offset` on, without extracting them.
        Returns the offset behind these bits."""
        if isinstance(target, Scalar):
            width = scalar_width(shape)
            self.scope.emit("assign", target.ref, ir.Lookahead(offset, width))
            if is_signed(shape):
                data = ir.Op("two_comp_mod", target.ref, ir.Const(width, 8))
                self.scope.emit("assign", target.ref, data)
            return offset + width
        if isinstance(target, HeaderPlace):
            self.scope.emit("add_header", target.expr)
            for part in target.fields():
                offset = self._look(part, part.type, offset, where)
            return offset
        if isinstance(target, StructPlace):
            for part in target.members.values():
                offset = self._look(part, part.type, offset, where)
            return offset
        if isinstance(target, StackPlace):
            for element in target.elements:
                offset = self._look(element, element.type, offset, where)
            return offset
        raise self.scope.unsupported(where, f"lookahead of type {shape}")

    # ------------------------------------------------------------------- states

    def _emit_states(
        self,
        name: str,
        where: Position,
        code: list[ir.Statement],
        transitions: list[ir.Transition],
        keys: list[ir.Expr],
    ) -> None:
        """Adds the state or states that one P4 state becomes. Branches, jumps and sub-parsers in it
        need states of their own."""
        state: ir.ParserState | None = self._new_state(name, where)
        for statement in code:
            if isinstance(statement, ir.Label):
                label_state = self._label_state(statement.label)
                _lead(state, label_state)
                state = self._new_state(label_state, where)
            elif state is None:
                continue
            elif isinstance(statement, ir.Primitive):
                state.ops.append(self._op(statement))
            elif isinstance(statement, ir.Goto):
                _lead(state, self._label_state(statement.label))
                state = None
            elif isinstance(statement, SubParser):
                _lead(state, statement.start)
                state = self._new_state(statement.resume, where)
            else:
                state = self._divert(state, statement)
        if state is not None:
            state.keys, state.transitions = keys, transitions

    def _new_state(self, name: str, where: Position) -> ir.ParserState:
        state = ir.ParserState(name, where)
        self.scope.unit.program.parser_states.append(state)
        return state

    def _label_state(self, label: int) -> str:
        if label not in self.label_states:
            self.label_states[label] = self.scope.unit.names.unique(
                f"{self.parser.frame.prefix}.label"
            )
        return self.label_states[label]

    def _divert(self, state: ir.ParserState, statement: ir.Statement) -> ir.ParserState:
        """Lowers a branch. It becomes a key of one bit, a state for each side, and a state in which
        the sides meet."""
        assert isinstance(statement, ir.If), statement
        flag = self.scope.temporary(types.Bits(1))
        assert isinstance(flag, Scalar)
        condition = arithmetic.as_data(statement.condition)
        test = ir.Primitive(statement.position, "assign", (flag.ref, condition))
        state.ops.append(self._op(test))
        state.keys = [flag.ref]
        rest = self.scope.unit.names.unique(f"{state.name}.next")
        firsts: list[str] = []
        for body in (statement.then, statement.otherwise):
            firsts.append(self.scope.unit.names.unique(f"{state.name}.if") if body else rest)
            if body:
                end = [ir.Transition("default", rest)]
                self._emit_states(firsts[-1], statement.position, body, end, [])
        state.transitions = [
            ir.Transition("hexstr", firsts[0], 1),
            ir.Transition("default", firsts[1]),
        ]
        return self._new_state(rest, statement.position)

    def _op(self, statement: ir.Primitive) -> ir.ParserOp:
        op, operands = statement.op, statement.parameters
        if op in ("extract", "extract_VL"):
            return _extract_op(op, operands)
        if op == "assign" and isinstance(operands[0], ir.FieldRef):
            return ir.ParserOp("set", operands)
        if op == "verify":
            return ir.ParserOp("verify", operands)
        if op == "advance":
            return ir.ParserOp("advance", operands)
        return ir.ParserOp("primitive", primitive=statement)


def _extract_op(op: str, operands: tuple[ir.Expr, ...]) -> ir.ParserOp:
    target = operands[0]
    assert isinstance(target, ir.ObjectRef)
    name: str | tuple[str, str] = target.name
    rest = operands[1:]
    if target.kind == "union_stack":
        member = operands[1]
        assert isinstance(member, ir.ObjectRef)
        name, rest = (target.name, member.name), operands[2:]
    return ir.ParserOp(op, rest, extract=(target.kind, name))


def _lead(state: ir.ParserState | None, following: str) -> None:
    if state is not None:
        state.transitions = [ir.Transition("default", following)]


def lower_parser(unit: Unit, instance: Instance, arguments: Sequence[Place | None]) -> None:
    """Lowers the parser. arguments: the places of its parameters, in order, with None for
    packet_in."""
    declaration = instance.declaration
    assert isinstance(declaration, ast.ParserDeclaration)
    frame = Frame(instance, "parser", instance.name, bindings=block_bindings(instance))
    for parameter, place in zip(declaration.parameters, arguments, strict=True):
        if place is not None:
            frame.env[parameter] = place
    body = ParserBody(unit, ParserFrame(frame, declaration, None))
    try:
        unit.program.init_state = body.run() or "start"
    except Unsupported as problem:
        unit.report(problem)
