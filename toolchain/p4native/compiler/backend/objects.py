"""Turns extern objects into BMv2 arrays and action profiles, and chooses the names of digests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from p4native.compiler import ast, types
from p4native.compiler.backend import ir
from p4native.compiler.backend.places import scalar_width
from p4native.compiler.backend.scope import Unit
from p4native.compiler.backend.storage import Unsupported, control_plane_name
from p4native.compiler.source import NOWHERE, Position
from p4native.compiler.typed import Instance

MAX_SIZE = 2**31 - 1
"""The largest size that P4Info can hold."""
EMIT_EXTERNS = "with --emit-externs it is left to a module that simple_switch loads"
PROFILE_KINDS = frozenset({"action_profile", "action_selector"})
V1MODEL_OBJECTS = PROFILE_KINDS | {
    "register",
    "counter",
    "meter",
    "direct_counter",
    "direct_meter",
}


def extern_instances(instance: Instance) -> Iterator[Instance]:
    """Yields all extern objects of a block and of the blocks inside it, in order of creation."""
    for child in instance.children.values():
        if isinstance(child.type, types.Extern):
            yield child
        else:
            yield from extern_instances(child)


def declare_externs(unit: Unit, instances: Iterable[Instance]) -> None:
    """Declares the arrays of extern objects, including those that the program does not use, because
    the control plane may use them."""
    for instance in instances:
        try:
            declare_extern(unit, instance)
            if instance.declaration.name in V1MODEL_OBJECTS:
                unit.externs.append(instance)
        except Unsupported as problem:
            unit.report(problem)


def declare_extern(unit: Unit, instance: Instance) -> None:
    kind = instance.declaration.name
    if kind == "register":
        register_of(unit, instance)
    elif kind in ("counter", "direct_counter"):
        counter_of(unit, instance)
    elif kind in ("meter", "direct_meter"):
        meter_of(unit, instance)
    elif kind not in PROFILE_KINDS:
        _declare_module_object(unit, instance)


def _declare_module_object(unit: Unit, instance: Instance) -> None:
    """Declares an object that a module loaded by BMv2 makes from the constructor's arguments."""
    kind, where = instance.declaration.name, position_of(instance)
    if not unit.emit_externs:
        raise Unsupported(where, f"the extern object {kind}", EMIT_EXTERNS)
    attributes: list[tuple[str, ir.Expr]] = []
    for name, value in instance.arguments.items():
        if isinstance(value, str):
            attributes.append((name, ir.Text(value)))
        elif isinstance(value, int):
            attributes.append((name, ir.Const(int(value))))
        else:
            raise Unsupported(where, f"the argument '{name}' of the extern object {kind}")
    extern = ir.ExternInstance(instance.name, kind, attributes, where)
    unit.program.extern_instances.append(extern)


def position_of(instance: Instance) -> Position:
    return instance.node.position if instance.node is not None else NOWHERE


def _size(instance: Instance) -> int:
    size = instance.arguments.get("size")
    if not isinstance(size, int):
        raise Unsupported(position_of(instance), f"{instance.name} without a constant size")
    if size > MAX_SIZE:
        raise Unsupported(position_of(instance), f"{instance.name} with more than {MAX_SIZE} cells")
    return size


def _unit_of(instance: Instance) -> str:
    kind = instance.arguments.get("type")
    return kind.name if isinstance(kind, ast.EnumMember) else "packets_and_bytes"


def register_of(unit: Unit, instance: Instance) -> ir.Array:
    if id(instance) not in unit.arrays:
        assert isinstance(instance.type, types.Extern)
        width = scalar_width_or_fail(instance)
        array = ir.Array(instance.name, position_of(instance), _size(instance), width)
        unit.arrays[id(instance)] = array
        unit.program.registers.append(array)
    return unit.arrays[id(instance)]


def scalar_width_or_fail(instance: Instance) -> int:
    """Returns the width of a register's cells. Raises Unsupported for aggregates, which BMv2 cannot
    store."""
    assert isinstance(instance.type, types.Extern)
    element = instance.type.arguments[0]
    if types.width_bits(element) is None and not isinstance(element, (types.Enum, types.Error)):
        raise Unsupported(position_of(instance), f"a register of {element}")
    if isinstance(element, (types.StructLike, types.Tuple, types.Stack)):
        raise Unsupported(position_of(instance), f"a register of {element}")
    return scalar_width(element)


def counter_of(unit: Unit, instance: Instance) -> ir.Array:
    if id(instance) not in unit.arrays:
        size = 0 if instance.declaration.name == "direct_counter" else _size(instance)
        array = ir.Array(instance.name, position_of(instance), size, unit=_unit_of(instance))
        unit.arrays[id(instance)] = array
        unit.program.counters.append(array)
    return unit.arrays[id(instance)]


def meter_of(unit: Unit, instance: Instance) -> ir.Array:
    if id(instance) not in unit.arrays:
        size = 0 if instance.declaration.name == "direct_meter" else _size(instance)
        array = ir.Array(instance.name, position_of(instance), size, unit=_unit_of(instance))
        unit.arrays[id(instance)] = array
        unit.program.meters.append(array)
    return unit.arrays[id(instance)]


def bind_direct(array: ir.Array, table: ir.Table) -> None:
    """Attaches a direct counter or meter to a table. Refuses a second table, because BMv2 allows
    only one."""
    if array.table not in (None, table.name):
        raise Unsupported(table.position, f"{array.name} attached to more than one table")
    array.table = table.name


def digest_name(shape: types.Type, number: int) -> str:
    """Returns a digest's name: that of its struct type, or one made from its number if the type is
    not a struct."""
    if isinstance(shape, types.StructLike):
        return control_plane_name(shape)
    return f"digest_{number}"
