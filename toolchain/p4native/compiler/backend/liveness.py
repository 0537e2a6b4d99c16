"""Finds which variables are used by one action only, and in which part of the action each of them
holds a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from p4native.compiler.backend import ir
from p4native.compiler.backend.storage import SCALARS

# Which parameter a primitive only writes.
DESTINATIONS = {
    "assign": 0,
    "register_read": 0,
    "modify_field_rng_uniform": 0,
    "modify_field_with_hash_based_offset": 0,
    "execute_meter": 2,
}
JUMPS = ("_jump", "_jump_if_zero")


@dataclass
class LiveRange:
    """The range from a variable's first access to its last one, as indices of the action's
    primitives."""

    ref: ir.FieldRef
    first: int
    last: int


def private_fields(program: ir.Program, user_fields: set[str]) -> set[str]:
    """Returns the names of the scalars that exactly one action uses, and that nothing else uses."""
    users: Counter[str] = Counter()
    for action in program.actions:
        names = {r.field for p in action.primitives for e in p.parameters for r in _scalars(e)}
        users.update(names)
    elsewhere = {r.field for expr in _other_expressions(program) for r in _scalars(expr)}
    return {n for n, count in users.items() if count == 1} - elsewhere - user_fields


def _scalars(expr: ir.Expr) -> Iterator[ir.FieldRef]:
    for node in ir.walk(expr):
        if isinstance(node, ir.FieldRef) and node.header == SCALARS:
            yield node


def _other_expressions(program: ir.Program) -> Iterator[ir.Expr]:
    for state in program.parser_states:
        yield from state.keys
        for op in state.ops:
            yield from op.primitive.parameters if op.primitive else op.parameters
    for pipeline in program.pipelines:
        yield from (node.condition for node in pipeline.conditionals)
        yield from (key.target for table in pipeline.tables for key in table.keys)
        for profile in pipeline.profiles:
            yield from profile.selector[1] if profile.selector else ()
    for checksum in program.checksums:
        yield checksum.target
        yield checksum.condition
    yield from (e for calculation in program.calculations for e in calculation.input)
    yield from (e for fields in program.field_lists for e in fields.elements)
    yield from (e for fields in program.learn_lists for e in fields.elements)
    yield from (m.result for m in program.meters if m.result is not None)


def live_ranges_of(action: ir.Action) -> Iterator[LiveRange]:
    """Yields the live ranges of those variables that are always written before they are read.
    Yields nothing for an action that jumps backwards."""
    jumps = list(_jumps(action))
    if any(target <= source for source, target in jumps):
        return
    accesses: dict[ir.FieldRef, list[int]] = {}
    for index, primitive in enumerate(action.primitives):
        for expr in primitive.parameters:
            for ref in _scalars(expr):
                accesses.setdefault(ref, []).append(index)
    for ref, indices in accesses.items():
        live_range = LiveRange(ref, indices[0], indices[-1])
        skipped = any(s < live_range.first < t <= live_range.last for s, t in jumps)
        if not skipped and _only_writes(action.primitives[live_range.first], ref):
            yield live_range


def _jumps(action: ir.Action) -> Iterator[tuple[int, int]]:
    for index, primitive in enumerate(action.primitives):
        if primitive.op in JUMPS:
            target = primitive.parameters[-1]
            assert isinstance(target, ir.Const)
            yield index, target.value


def _only_writes(primitive: ir.Primitive, ref: ir.FieldRef) -> bool:
    written = DESTINATIONS.get(primitive.op)
    return written is not None and all(
        (i == written) == (ref in list(_scalars(e))) for i, e in enumerate(primitive.parameters)
    )


def replaced(expr: ir.Expr, mapping: Mapping[ir.FieldRef, ir.Expr]) -> ir.Expr:
    """Returns the expression with the mapped fields replaced by the expressions they map to."""
    if isinstance(expr, ir.FieldRef):
        return mapping.get(expr, expr)
    if isinstance(expr, ir.Op):
        left = None if expr.left is None else replaced(expr.left, mapping)
        condition = None if expr.condition is None else replaced(expr.condition, mapping)
        return ir.Op(expr.op, left, replaced(expr.right, mapping), condition)
    if isinstance(expr, ir.Access):
        base = replaced(expr.base, mapping)
        return ir.Access(expr.op, base, expr.offset, expr.width, expr.signed)
    if isinstance(expr, ir.RegisterCell):
        return ir.RegisterCell(expr.array, replaced(expr.index, mapping), expr.width)
    if isinstance(expr, ir.Vector):
        return ir.Vector(tuple(replaced(e, mapping) for e in expr.items))
    return expr
