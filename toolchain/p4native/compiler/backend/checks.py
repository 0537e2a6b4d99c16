"""Lowers checksum controls and the deparser: the blocks that BMv2 takes as lists and not as
code."""

from __future__ import annotations

from collections.abc import Sequence

from p4native.compiler import ast
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.control import block_arguments, block_bindings
from p4native.compiler.backend.effects import Effects
from p4native.compiler.backend.parts import Parts
from p4native.compiler.backend.places import (
    HeaderPlace,
    Place,
    Scalar,
    StackPlace,
    StructPlace,
    UnionPlace,
)
from p4native.compiler.backend.scope import Frame, Unit
from p4native.compiler.backend.storage import Unsupported
from p4native.compiler.typed import CallInfo, CallKind, Instance


class ListBody:
    """The body of a control that consists only of calls, possibly inside `if`s. condition: the
    condition under which the call that is being lowered runs."""

    def __init__(self, parts: Parts) -> None:
        self.scope = parts.scope
        self.expressions = parts.expressions
        self.calls = parts.calls
        self.statements = parts.statements
        self.condition: ir.Expr = arithmetic.TRUE
        self.scope.calls[CallKind.CONTROL_APPLY] = self.control_call
        self.scope.statements[ast.If] = self._if

    def run(self, control: ast.ControlDeclaration) -> None:
        self.statements.lower_statements(control.body.statements)
        for statement in self.scope.code:
            raise Unsupported(statement.position, f"a computation in {control.name}")

    def control_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        """Lowers a sub-control. Its calls are treated like those of the control that applies it."""
        instance = self.scope.called_instance(call, info)
        control = instance.declaration
        assert isinstance(control, ast.ControlDeclaration)
        bindings = block_bindings(instance)
        frame = Frame(
            instance,
            self.scope.frame.block,
            instance.name,
            caller=self.scope.frame,
            bindings=bindings,
        )
        self.calls.enter(frame, block_arguments(instance, info), Effects())
        with self.scope.inside(frame):
            self.statements.lower_statements(control.body.statements)
        self.calls.copy_out(frame)
        return None

    def _if(self, statement: ast.If) -> None:
        outer = self.condition
        condition = self.expressions.value(statement.condition)
        self.condition = arithmetic.both(outer, condition)
        self.statements.statement(statement.then)
        if statement.otherwise is not None:
            self.condition = arithmetic.both(outer, arithmetic.negate(condition))
            self.statements.statement(statement.otherwise)
        self.condition = outer


class ChecksumCalls:
    """The calls of a checksum control. Each call becomes a checksum of the program."""

    def __init__(self, parts: Parts, body: ListBody) -> None:
        self.scope = parts.scope
        self.expressions = parts.expressions
        self.externs = parts.externs
        self.body = body
        self.scope.calls[CallKind.EXTERN_FUNCTION] = self.extern_call
        self.scope.calls[CallKind.EXTERN_METHOD] = self.extern_call

    def extern_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        verb, _, rest = info.method.partition("_checksum")
        if verb not in ("verify", "update") or rest not in ("", "_with_payload"):
            return self.externs.extern_call(call, info)
        if verb != self.scope.frame.block:
            raise self.scope.unsupported(call, f"{info.method} in this control")
        condition = self.expressions.value(self.externs.argument(info, 0))
        inputs = [
            self._input(e, call)
            for e, _ in self.externs.flat_values(self.externs.argument(info, 1))
        ]
        target = self.expressions.place(self.externs.argument(info, 2))
        if not isinstance(target, Scalar) or not isinstance(target.ref, ir.FieldRef):
            raise self.scope.unsupported(call, "a checksum that is not a field")
        algorithm = self.externs.enum_name(self.externs.argument(info, 3))
        calculation = self.externs.calculation(algorithm, inputs, payload=bool(rest))
        self.scope.unit.program.checksums.append(
            ir.Checksum(
                self.scope.unit.names.unique("cksum"),
                target.ref,
                calculation,
                arithmetic.both(self.body.condition, condition),
                verb == "verify",
                call.position,
            )
        )
        return None

    def _input(self, expr: ir.Expr, call: ast.Call) -> ir.Expr:
        if not isinstance(expr, (ir.FieldRef, ir.ObjectRef, ir.Const)):
            raise self.scope.unsupported(call, "a computed value in a checksum's data")
        return expr


class DeparserCalls:
    """The calls of the deparser, which give the headers to emit, in order."""

    def __init__(self, parts: Parts, body: ListBody) -> None:
        self.scope = parts.scope
        self.expressions = parts.expressions
        self.externs = parts.externs
        self.body = body
        self.scope.calls[CallKind.EXTERN_FUNCTION] = self.extern_call
        self.scope.calls[CallKind.EXTERN_METHOD] = self.extern_call

    def extern_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        if info.kind is not CallKind.EXTERN_METHOD or info.method != "emit":
            raise self.scope.unsupported(call, f"{info.method} in a deparser")
        if self.body.condition != arithmetic.TRUE:
            raise self.scope.unsupported(call, "emit under a condition")
        self._emit_place(self.expressions.place(self.externs.argument(info, 0)), call)
        return None

    def _emit_place(self, place: Place, call: ast.Call) -> None:
        if isinstance(place, HeaderPlace) and place.name is not None:
            self.scope.unit.program.deparse_order.append(place.name)
        elif isinstance(place, StackPlace):
            for element in place.elements:
                self._emit_place(element, call)
        elif isinstance(place, (StructPlace, UnionPlace)):
            for member in place.members.values():
                self._emit_place(member, call)
        else:
            raise self.scope.unsupported(call, "emitting this value")


def lower_checksums(unit: Unit, instance: Instance, block: str, arguments: Sequence[Place]) -> None:
    """Lowers a checksum control. block: "verify" or "update"."""
    _lower_list(unit, instance, block, arguments, ChecksumCalls)


def lower_deparser(unit: Unit, instance: Instance, arguments: Sequence[Place | None]) -> None:
    unit.program.deparser_position = instance.declaration.position
    _lower_list(unit, instance, "deparser", arguments, DeparserCalls)


def _lower_list(
    unit: Unit,
    instance: Instance,
    block: str,
    arguments: Sequence[Place | None],
    calls: type[ChecksumCalls | DeparserCalls],
) -> None:
    control = instance.declaration
    assert isinstance(control, ast.ControlDeclaration)
    frame = Frame(instance, block, instance.name, bindings=block_bindings(instance))
    for parameter, place in zip(control.parameters, arguments, strict=True):
        if place is not None:
            frame.env[parameter] = place
    try:
        parts = Parts(unit, frame)
        body = ListBody(parts)
        calls(parts, body)
        body.run(control)
    except Unsupported as problem:
        unit.report(problem)
