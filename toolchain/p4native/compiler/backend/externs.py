"""Lowers v1model's extern functions and objects to primitives and arrays."""

from __future__ import annotations

from collections.abc import Callable

from p4native.compiler import ast, types
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.assignments import Assignments
from p4native.compiler.backend.expressions import Expressions
from p4native.compiler.backend.objects import (
    EMIT_EXTERNS,
    V1MODEL_OBJECTS,
    counter_of,
    digest_name,
    meter_of,
    register_of,
)
from p4native.compiler.backend.places import (
    HeaderPlace,
    Place,
    Scalar,
    SelectedPlace,
    StackPlace,
    StructPlace,
    UnionPlace,
    VarbitPlace,
    WithFields,
    is_scalar,
    is_signed,
    plain,
    scalar_width,
)
from p4native.compiler.backend.scope import Scope
from p4native.compiler.backend.storage import STANDARD_METADATA
from p4native.compiler.typed import CallInfo, CallKind, Instance

HASHES = frozenset(
    {"crc32", "crc32_custom", "crc16", "crc16_custom", "random", "identity", "csum16", "xor16"}
)


class Externs:
    """The part that lowers calls of v1model's extern functions and objects."""

    def __init__(self, scope: Scope, expressions: Expressions, assignments: Assignments) -> None:
        self.scope = scope
        self.expressions = expressions
        self.assignments = assignments
        scope.calls[CallKind.EXTERN_FUNCTION] = self.extern_call
        scope.calls[CallKind.EXTERN_METHOD] = self.extern_call

    def extern_call(self, call: ast.Call, info: CallInfo) -> Place | None:
        if info.kind is CallKind.EXTERN_METHOD:
            self._method(call, info)
            return None
        handler = FUNCTIONS.get(info.method)
        if handler is not None:
            handler(self, call, info)
            return None
        if not self.scope.unit.emit_externs:
            raise self.scope.unsupported(call, f"the extern function {info.method}", EMIT_EXTERNS)
        self.primitive(call, info)
        return None

    def argument(self, info: CallInfo, index: int) -> ast.Expression:
        value = info.arguments[index].value
        assert value is not None
        return value

    def data(self, expression: ast.Expression) -> ir.Expr:
        return arithmetic.as_data(self.expressions.value(expression))

    # ------------------------------------------------------------------ objects

    def _method(self, call: ast.Call, info: CallInfo) -> None:
        assert info.receiver is not None
        instance = self.scope.instance_of(info.receiver)
        kind = instance.declaration.name
        handler = METHODS.get((kind, info.method))
        if handler is not None:
            handler(self, instance, info)
            return
        if kind in V1MODEL_OBJECTS or not self.scope.unit.emit_externs:
            raise self.scope.unsupported(call, f"{kind}.{info.method}")
        receiver = ir.ObjectRef("extern", instance.name)
        self._module_primitive(call, info, f"_{kind}_{info.method}", receiver)

    def _module_primitive(
        self, call: ast.Call, info: CallInfo, op: str, *operands: ir.Expr
    ) -> None:
        """Emits a primitive that a module loaded by BMv2 implements. Such a primitive can write
        only to fields and headers."""
        if not isinstance(info.result, types.Void):
            raise self.scope.unsupported(
                call, f"the result of {info.method}", "use an out parameter"
            )
        given: list[ir.Expr] = list(operands)
        written: list[tuple[ir.Expr, Place | None]] = []
        for bound in info.arguments:
            if bound.value is None:
                raise self.scope.unsupported(call, f"{info.method} without all its arguments")
            if bound.parameter.direction in ("out", "inout") and is_scalar(bound.parameter.type):
                written.append(self._field_for(bound.value, bound.parameter.direction))
                given.append(written[-1][0])
            elif isinstance(plain(self.scope.type_of(bound.value)), types.String):
                given.append(self.expressions.value(bound.value))
            else:
                given += [value for value, _ in self.flat_values(bound.value)]
        self.scope.emit(op, *given)
        for ref, target in written:
            self.assignments.deliver(ref, target)

    def _field_for(self, argument: ast.Expression, direction: str) -> tuple[ir.Expr, Place | None]:
        """Returns the same as `output`. For an `inout` parameter, also copies the argument's
        present value to the field."""
        ref, target = self.assignments.output(argument)
        if target is not None and direction == "inout":
            self.scope.emit(
                "assign", ref, arithmetic.as_data(self.expressions.read(target, argument))
            )
        return ref, target

    def register_read(self, instance: Instance, info: CallInfo) -> None:
        ref, target = self.assignments.output(self.argument(info, 0))
        index = self.data(self.argument(info, 1))
        array = register_of(self.scope.unit, instance)
        self.scope.emit("register_read", ref, ir.ObjectRef("register_array", array.name), index)
        if target is None and is_signed(self.scope.type_of(self.argument(info, 0))):
            width = scalar_width(self.scope.type_of(self.argument(info, 0)))
            self.scope.emit("assign", ref, ir.Op("two_comp_mod", ref, ir.Const(width, 8)))
        self.assignments.deliver(ref, target)

    def register_write(self, instance: Instance, info: CallInfo) -> None:
        index, value = self.expressions.values((self.argument(info, 0), self.argument(info, 1)))
        array = register_of(self.scope.unit, instance)
        data = arithmetic.unsigned(arithmetic.as_data(value), array.width)
        self.scope.emit("register_write", ir.ObjectRef("register_array", array.name), index, data)

    def counter_count(self, instance: Instance, info: CallInfo) -> None:
        array = counter_of(self.scope.unit, instance)
        index = self.data(self.argument(info, 0))
        self.scope.emit("count", ir.ObjectRef("counter_array", array.name), index)

    def meter_execute(self, instance: Instance, info: CallInfo) -> None:
        array = meter_of(self.scope.unit, instance)
        index = self.data(self.argument(info, 0))
        ref, target = self.assignments.output(self.argument(info, 1))
        self.scope.emit("execute_meter", ir.ObjectRef("meter_array", array.name), index, ref)
        self.assignments.deliver(ref, target)

    def direct_count(self, instance: Instance, info: CallInfo) -> None:
        """Records that a direct counter is used. No primitive is needed, because BMv2 itself counts
        every hit of the table."""
        self.scope.unit.direct_uses.append(
            (counter_of(self.scope.unit, instance), self.scope.position)
        )

    def direct_read(self, instance: Instance, info: CallInfo) -> None:
        """Sets the field that receives a direct meter's color. BMv2 itself executes the meter on
        every hit and writes the color to result_target."""
        target = self.expressions.place(self.argument(info, 0))
        if not isinstance(target, Scalar) or not isinstance(target.ref, ir.FieldRef):
            raise self.scope.unsupported(self.argument(info, 0), "a direct meter's result here")
        array = meter_of(self.scope.unit, instance)
        if array.result not in (None, target.ref):
            raise self.scope.unsupported(
                self.argument(info, 0), "reading a direct meter into two different places"
            )
        array.result = target.ref
        self.scope.unit.direct_uses.append((array, self.scope.position))

    # ---------------------------------------------------------------- functions

    def mark_to_drop(self, call: ast.Call, info: CallInfo) -> None:
        self.scope.emit("mark_to_drop", ir.ObjectRef("header", STANDARD_METADATA))

    def truncate(self, call: ast.Call, info: CallInfo) -> None:
        self.scope.emit("truncate", self.data(self.argument(info, 0)))

    def random(self, call: ast.Call, info: CallInfo) -> None:
        ref, target = self.assignments.output(self.argument(info, 0))
        low, high = self.expressions.values((self.argument(info, 1), self.argument(info, 2)))
        self.scope.emit("modify_field_rng_uniform", ref, low, high)
        self.assignments.deliver(ref, target)

    def hash(self, call: ast.Call, info: CallInfo) -> None:
        algorithm = self.enum_name(self.argument(info, 1))
        if algorithm not in HASHES:
            raise self.scope.unsupported(self.argument(info, 1), f"the hash algorithm {algorithm}")
        ref, target = self.assignments.output(self.argument(info, 0))
        base = self.data(self.argument(info, 2))
        inputs = self.calculation_input(self.argument(info, 3))
        limit = self.data(self.argument(info, 4))
        name = self.calculation(algorithm, inputs, payload=False)
        calculation = ir.ObjectRef("calculation", name)
        self.scope.emit("modify_field_with_hash_based_offset", ref, base, calculation, limit)
        self.assignments.deliver(ref, target)

    def enum_name(self, expression: ast.Expression) -> str:
        member = self.scope.evaluated(expression)
        if not isinstance(member, ast.EnumMember):
            raise self.scope.unsupported(expression, "an enum value not known at compile time")
        return member.name

    def calculation(self, algorithm: str, inputs: list[ir.Expr], payload: bool) -> str:
        name = self.scope.unit.names.unique("calc")
        self.scope.unit.program.calculations.append(
            ir.Calculation(name, algorithm, inputs, payload, self.scope.position)
        )
        return name

    def calculation_input(self, expression: ast.Expression) -> list[ir.Expr]:
        """Returns the input of a calculation: fields, headers and constants. A computed value is
        put into a temporary."""
        return [self._simple(e, shape) for e, shape in self.flat_values(expression)]

    def flat_values(self, expression: ast.Expression) -> list[tuple[ir.Expr, types.Type]]:
        """Returns all scalars and headers of a list, tuple or struct, in order."""
        return list(self._flat(self.expressions.operand(expression), expression))

    def _flat(self, place: Place, where: ast.Node) -> list[tuple[ir.Expr, types.Type]]:
        if isinstance(place, StructPlace):
            return [p for m in place.members.values() for p in self._flat(m, where)]
        if isinstance(place, StackPlace):
            return [p for m in place.elements for p in self._flat(m, where)]
        if isinstance(place, UnionPlace):
            return [p for m in place.members.values() for p in self._flat(m, where)]
        if isinstance(place, HeaderPlace):
            kept = place if place.name is not None else self.expressions.set_aside(place)
            assert isinstance(kept, HeaderPlace)
            return [(kept.expr, kept.type)]
        if isinstance(place, SelectedPlace) and not is_scalar(place.type):
            return self._flat(self.expressions.set_aside(place), where)
        if isinstance(place, VarbitPlace):
            return [(place.ref, place.type)]
        return [(arithmetic.as_data(self.expressions.read(place, where)), place.type)]

    def _simple(self, expr: ir.Expr, shape: types.Type) -> ir.Expr:
        if isinstance(expr, ir.ObjectRef):
            return expr
        if isinstance(expr, ir.FieldRef) and (
            not is_scalar(shape) or expr.width == max(1, scalar_width(shape))
        ):
            return expr
        if isinstance(expr, ir.Const):
            return ir.Const(expr.value & arithmetic.mask(expr.width), expr.width)
        if isinstance(plain(shape), types.Boolean):
            shape = types.Bits(1)
        kept = self.expressions.keep(expr, shape)
        assert isinstance(kept, ir.FieldRef)
        return kept

    def _members(self, place: Place, where: ast.Node) -> list[tuple[ir.Expr, types.Type]]:
        """Returns all scalars of a value, including the fields of its headers."""
        if isinstance(place, StructPlace):
            return [p for m in place.members.values() for p in self._members(m, where)]
        if isinstance(place, WithFields):
            return [p for m in place.fields() for p in self._members(m, where)]
        if isinstance(place, SelectedPlace) and not is_scalar(place.type):
            return self._members(self.expressions.set_aside(place), where)
        return [(arithmetic.as_data(self.expressions.read(place, where)), place.type)]

    def _sample(self, expr: ir.Expr, shape: types.Type) -> ir.Expr:
        """Returns a field with a copy of the present value of a digest's member. BMv2 reads digests
        from fields only, and not before ingress has ended."""
        kept = self.expressions.keep(
            expr, types.Bits(1) if isinstance(plain(shape), types.Boolean) else shape
        )
        assert isinstance(kept, ir.FieldRef)
        return kept

    def digest(self, call: ast.Call, info: CallInfo) -> None:
        receiver = self.data(self.argument(info, 0))
        value = self.argument(info, 1)
        elements = [
            self._sample(e, s) for e, s in self._members(self.expressions.operand(value), value)
        ]
        learn_lists = self.scope.unit.program.learn_lists
        shape = self.scope.type_of(value)
        name = digest_name(shape, len(learn_lists))
        self.scope.unit.digests.setdefault(name, shape)
        identifier = len(learn_lists) + 1
        learn_lists.append(ir.FieldList(name, identifier, elements, self.scope.position))
        self.scope.emit("generate_digest", receiver, ir.Const(identifier, 32))

    def clone(self, call: ast.Call, info: CallInfo) -> None:
        kind = self.enum_name(self.argument(info, 0))
        block = "ingress" if kind == "I2E" else "egress"
        if self.scope.frame.block != block:
            raise self.scope.unsupported(call, f"clone of kind {kind} outside {block}")
        session = self.data(self.argument(info, 1))
        kept = self.argument(info, 2) if len(info.arguments) > 2 else None
        identifier = self._kept_fields(info.method, kept)
        self.scope.emit(f"clone_{block}_pkt_to_egress", session, ir.Const(identifier, 32))

    def resubmit(self, call: ast.Call, info: CallInfo) -> None:
        self._again("resubmit", "ingress", call, info)

    def recirculate(self, call: ast.Call, info: CallInfo) -> None:
        self._again("recirculate", "egress", call, info)

    def _again(self, op: str, block: str, call: ast.Call, info: CallInfo) -> None:
        if self.scope.frame.block != block:
            raise self.scope.unsupported(call, f"{op} outside {block}")
        identifier = self._kept_fields(info.method, self.argument(info, 0))
        self.scope.emit(op, ir.Const(identifier, 32))

    def _kept_fields(self, method: str, kept: ast.Expression | None) -> int:
        """Returns the identifier of the list of metadata that the new packet keeps. `kept` is
        either the index of a `@field_list` or the fields themselves."""
        if kept is None:
            return self.field_list(None)
        if method.endswith("_preserving_field_list"):
            return self.field_list(self._list_index(kept))
        elements = [expr for expr, _ in self.flat_values(kept)]
        if not all(isinstance(e, (ir.FieldRef, ir.Const)) for e in elements):
            raise self.scope.unsupported(kept, "anything but fields in a list of metadata to keep")
        lists = self.scope.unit.program.field_lists
        fields: list[ir.Expr] = [e for e in elements if isinstance(e, ir.FieldRef)]
        name = self.scope.unit.names.unique("kept")
        lists.append(ir.FieldList(name, len(lists) + 1, fields, self.scope.position))
        return len(lists)

    def _list_index(self, expression: ast.Expression) -> int:
        index = self.scope.evaluated(expression)
        if not isinstance(index, int):
            raise self.scope.unsupported(expression, "a field list index not known at compile time")
        return index

    def field_list(self, index: int | None) -> int:
        """Returns the identifier of the list of fields that have `@field_list(index)`. If the index
        is None, returns that of a list without fields."""
        key = -1 if index is None else index
        known = self.scope.unit.field_lists
        if key not in known:
            lists = self.scope.unit.program.field_lists
            known[key] = len(lists) + 1
            name = "empty" if index is None else f"field_list{index}"
            lists.append(ir.FieldList(name, known[key], [], self.scope.position))
        return known[key]

    def primitive(self, call: ast.Call, info: CallInfo) -> None:
        """Lowers a call of an extern function to the primitive with the same name and arguments."""
        self._module_primitive(call, info, info.method)

    def log_msg(self, call: ast.Call, info: CallInfo) -> None:
        message = self.expressions.value(self.argument(info, 0))
        items: list[ir.Expr] = []
        if len(info.arguments) > 1:
            items = [e for e, _ in self.flat_values(self.argument(info, 1))]
        self.scope.emit("log_msg", message, ir.Vector(tuple(items)))

    def assertion(self, call: ast.Call, info: CallInfo) -> None:
        condition = self.expressions.value(self.argument(info, 0))
        if condition.is_boolean:
            condition = arithmetic.as_data(condition)
        self.scope.emit(info.method, condition)


FUNCTIONS: dict[str, Callable[[Externs, ast.Call, CallInfo], None]] = {
    "mark_to_drop": Externs.mark_to_drop,
    "truncate": Externs.truncate,
    "random": Externs.random,
    "hash": Externs.hash,
    "digest": Externs.digest,
    "clone": Externs.clone,
    "clone3": Externs.clone,
    "resubmit": Externs.resubmit,
    "recirculate": Externs.recirculate,
    "clone_preserving_field_list": Externs.clone,
    "resubmit_preserving_field_list": Externs.resubmit,
    "recirculate_preserving_field_list": Externs.recirculate,
    "log_msg": Externs.log_msg,
    "assert": Externs.assertion,
    "assume": Externs.assertion,
}
METHODS: dict[tuple[str, str], Callable[[Externs, Instance, CallInfo], None]] = {
    ("register", "read"): Externs.register_read,
    ("register", "write"): Externs.register_write,
    ("counter", "count"): Externs.counter_count,
    ("meter", "execute_meter"): Externs.meter_execute,
    ("direct_counter", "count"): Externs.direct_count,
    ("direct_meter", "read"): Externs.direct_read,
}
