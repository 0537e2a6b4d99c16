"""Reads wide registers where their value is used, without a variable in between.

`r.read(x, i)` copies a register into a field of metadata, which BMv2 and our switch carry along
with every packet. Inside an expression, both can read the register itself.

Only reads wider than 64 bits are moved, for two reasons. Narrow fields cost little. An index out of
range inside an expression ends a BMv2 that was built with assertions, whereas `register_read` with
such an index only leaves the variable as it is.
"""

from __future__ import annotations

from p4native.compiler.backend import ir
from p4native.compiler.backend.liveness import (
    DESTINATIONS,
    JUMPS,
    LiveRange,
    live_ranges_of,
    private_fields,
    replaced,
)

NARROW_BITS = 64
# Where a primitive takes any expression that has a value.
VALUES = {"assign": 1, "register_write": 2, "_jump_if_zero": 0}
# Primitives that change nothing but a register or what DESTINATIONS says.
TRANSPARENT = frozenset({*DESTINATIONS, *VALUES, "_jump", "count", "log_msg"})


def read_registers_in_place(program: ir.Program, user_fields: set[str]) -> None:
    """Moves reads of wide registers to where the values are used. user_fields: names of scalars
    that belong to the program's own metadata."""
    private = private_fields(program, user_fields)
    gone: set[str] = set()
    for action in program.actions:
        moved = [
            live_range
            for live_range in live_ranges_of(action)
            if live_range.ref.field in private and _may_move(action.primitives, live_range)
        ]
        for live_range in sorted(moved, key=lambda each: each.first, reverse=True):
            _move(action.primitives, live_range)
        gone |= {live_range.ref.field for live_range in moved}
    scalars = program.header_types[0]
    scalars.fields = [field for field in scalars.fields if field[0] not in gone]


def _may_move(code: list[ir.Primitive], live_range: LiveRange) -> bool:
    """Whether a live range begins with a register read that can be moved to where the variable is
    used."""
    read = code[live_range.first]
    if read.op != "register_read" or live_range.ref.width <= NARROW_BITS or live_range.ref.signed:
        return False
    _, array, index = read.parameters
    changed = False
    for primitive in code[live_range.first + 1 : live_range.last + 1]:
        uses = [i for i, e in enumerate(primitive.parameters) if live_range.ref in ir.walk(e)]
        if uses and (changed or uses != [VALUES.get(primitive.op)]):
            return False
        changed = changed or _may_change(primitive, array, index)
    return True


def _may_change(primitive: ir.Primitive, array: ir.Expr, index: ir.Expr) -> bool:
    """Whether a primitive may change the register or anything that the register's index depends
    on."""
    if primitive.op not in TRANSPARENT:
        return True
    if primitive.op == "register_write":
        return primitive.parameters[0] == array
    written = DESTINATIONS.get(primitive.op)
    return written is not None and _reads(index, primitive.parameters[written])


def _reads(expr: ir.Expr, written: ir.Expr) -> bool:
    """Whether an expression may read what is written. Two different fields never overlap."""
    parts = [e for e in ir.walk(expr) if not isinstance(e, (ir.Const, ir.ActionData, ir.Op))]
    plain = all(isinstance(e, ir.FieldRef) for e in (*parts, written))
    return bool(parts) and (not plain or written in parts)


def _move(code: list[ir.Primitive], live_range: LiveRange) -> None:
    _, array, index = code[live_range.first].parameters
    assert isinstance(array, ir.ObjectRef)
    cell = ir.RegisterCell(array.name, index, live_range.ref.width)
    for primitive in code[live_range.first + 1 : live_range.last + 1]:
        primitive.parameters = tuple(
            replaced(e, {live_range.ref: cell}) for e in primitive.parameters
        )
    _remove(code, live_range.first)


def _remove(code: list[ir.Primitive], removed: int) -> None:
    del code[removed]
    for primitive in code:
        if primitive.op in JUMPS:
            *condition, target = primitive.parameters
            assert isinstance(target, ir.Const)
            if target.value > removed:
                target = ir.Const(target.value - 1, target.width)
            primitive.parameters = (*condition, target)
