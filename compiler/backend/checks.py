"""Checksum controls and the deparser: the blocks that BMv2 takes as lists, not as code."""

from __future__ import annotations

from collections.abc import Sequence

from agglab.compiler import ast
from agglab.compiler.backend import arithmetic, ir
from agglab.compiler.backend.control import block_arguments, block_bindings
from agglab.compiler.backend.effects import Effects
from agglab.compiler.backend.externs import Externs
from agglab.compiler.backend.places import (
    HeaderPlace,
    Place,
    Scalar,
    StackPlace,
    StructPlace,
    UnionPlace,
)
from agglab.compiler.backend.scope import Frame, Unit
from agglab.compiler.backend.storage import Unsupported
from agglab.compiler.typed import CallInfo, CallKind, Instance


class ListBody(Externs):
    """A control made of calls only, possibly inside `if`s; condition: what holds at a call."""

    def __init__(self, unit: Unit, frame: Frame) -> None:
        super().__init__(unit, frame)
        self.condition: ir.Expr = arithmetic.TRUE

    def run(self, control: ast.ControlDeclaration) -> None:
        self.statements(control.body.statements)
        for statement in self.code:
            raise Unsupported(statement.position, f"a computation in {control.name}")

    def control_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        """A sub-control, whose calls are as good as those of this one."""
        instance = self.called_instance(call, info)
        control = instance.declaration
        assert isinstance(control, ast.ControlDeclaration)
        bindings = block_bindings(instance)
        frame = Frame(
            instance, self.frame.block, instance.name, caller=self.frame, bindings=bindings
        )
        self.enter(frame, block_arguments(instance, info), Effects())
        with self.inside(frame):
            self.statements(control.body.statements)
        self.copy_out(frame)
        return None

    def _if(self, statement: ast.If) -> None:
        outer = self.condition
        condition = self.value(statement.condition)
        self.condition = arithmetic.both(outer, condition)
        self.statement(statement.then)
        if statement.otherwise is not None:
            self.condition = arithmetic.both(outer, arithmetic.negate(condition))
            self.statement(statement.otherwise)
        self.condition = outer


class ChecksumBody(ListBody):
    def extern_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        verb, _, rest = info.method.partition("_checksum")
        if verb not in ("verify", "update") or rest not in ("", "_with_payload"):
            return super().extern_call(call, info)
        if verb != self.frame.block:
            raise self.unsupported(call, f"{info.method} in this control")
        condition = self.value(self.argument(info, 0))
        inputs = [self._input(e, call) for e, _ in self.flat_values(self.argument(info, 1))]
        target = self.place(self.argument(info, 2))
        if not isinstance(target, Scalar) or not isinstance(target.ref, ir.FieldRef):
            raise self.unsupported(call, "a checksum that is not a field")
        algorithm = self.enum_name(self.argument(info, 3))
        calculation = self.calculation(algorithm, inputs, payload=bool(rest))
        self.unit.program.checksums.append(
            ir.Checksum(
                self.unit.names.unique("cksum"),
                target.ref,
                calculation,
                arithmetic.both(self.condition, condition),
                verb == "verify",
                call.position,
            )
        )
        return None

    def _input(self, expr: ir.Expr, call: ast.Call) -> ir.Expr:
        if not isinstance(expr, (ir.FieldRef, ir.ObjectRef, ir.Const)):
            raise self.unsupported(call, "a computed value in a checksum's data")
        return expr


class DeparserBody(ListBody):
    def extern_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        if info.kind is not CallKind.EXTERN_METHOD or info.method != "emit":
            raise self.unsupported(call, f"{info.method} in a deparser")
        if self.condition != arithmetic.TRUE:
            raise self.unsupported(call, "emit under a condition")
        self._emit_place(self.place(self.argument(info, 0)), call)
        return None

    def _emit_place(self, place: Place, call: ast.Call) -> None:
        if isinstance(place, HeaderPlace) and place.name is not None:
            self.unit.program.deparse_order.append(place.name)
        elif isinstance(place, StackPlace):
            for element in place.elements:
                self._emit_place(element, call)
        elif isinstance(place, (StructPlace, UnionPlace)):
            for member in place.members.values():
                self._emit_place(member, call)
        else:
            raise self.unsupported(call, "emitting this value")


def lower_checksums(unit: Unit, instance: Instance, block: str, arguments: Sequence[Place]) -> None:
    """block: "verify" or "update"."""
    _lower_list(unit, instance, block, arguments, ChecksumBody)


def lower_deparser(unit: Unit, instance: Instance, arguments: Sequence[Place | None]) -> None:
    unit.program.deparser_position = instance.declaration.position
    _lower_list(unit, instance, "deparser", arguments, DeparserBody)


def _lower_list(
    unit: Unit,
    instance: Instance,
    block: str,
    arguments: Sequence[Place | None],
    body: type[ListBody],
) -> None:
    control = instance.declaration
    assert isinstance(control, ast.ControlDeclaration)
    frame = Frame(instance, block, instance.name, bindings=block_bindings(instance))
    for parameter, place in zip(control.parameters, arguments, strict=True):
        if place is not None:
            frame.env[parameter] = place
    try:
        body(unit, frame).run(control)
    except Unsupported as problem:
        unit.report(problem)
