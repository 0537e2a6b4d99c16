"""Variables of one action that are never alive together share a field of `scalars`.

BMv2 and our switch pay for every bit of metadata of every packet; a program that reads wide
registers into one variable after another would otherwise carry all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from compiler.backend import ir
from compiler.backend.storage import SCALARS, Names

# Which parameter a primitive only writes.
DESTINATIONS = {
    "assign": 0,
    "register_read": 0,
    "modify_field_rng_uniform": 0,
    "modify_field_with_hash_based_offset": 0,
    "execute_meter": 2,
}
Mapping = dict[ir.FieldRef, ir.FieldRef]


@dataclass
class Life:
    """A variable's first and last access, as indices of the action's primitives."""

    ref: ir.FieldRef
    first: int
    last: int


def share_variables(program: ir.Program, user_fields: set[str]) -> None:
    """user_fields: names of scalars that belong to the program's own metadata."""
    scalars = next(t for t in program.header_types if t.name == f"{SCALARS}_0")
    names = Names()
    for name, _, _ in scalars.fields:
        names.unique(name)
    private = _private_fields(program, user_fields)
    merged: set[str] = set()
    for action in program.actions:
        lives = [life for life in _lives(action) if life.ref.field in private]
        mapping = _allocate(lives, names)
        if mapping:
            _rewrite(action, mapping)
            merged |= {ref.field for ref in mapping}
            scalars.fields += [
                (ref.field, ref.width, ref.signed) for ref in dict.fromkeys(mapping.values())
            ]
    scalars.fields = [f for f in scalars.fields if f[0] not in merged]


# ------------------------------------------------------------------ what may move


def _private_fields(program: ir.Program, user_fields: set[str]) -> set[str]:
    """Scalars that a single action uses and nothing else does."""
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


def _lives(action: ir.Action) -> Iterator[Life]:
    """Variables whose every read follows a write in straight or forward-jumping code."""
    jumps = list(_jumps(action))
    if any(target <= source for source, target in jumps):
        return
    accesses: dict[ir.FieldRef, list[int]] = {}
    for index, primitive in enumerate(action.primitives):
        for expr in primitive.parameters:
            for ref in _scalars(expr):
                accesses.setdefault(ref, []).append(index)
    for ref, indices in accesses.items():
        life = Life(ref, indices[0], indices[-1])
        skipped = any(s < life.first < t <= life.last for s, t in jumps)
        if not skipped and _only_writes(action.primitives[life.first], ref):
            yield life


def _jumps(action: ir.Action) -> Iterator[tuple[int, int]]:
    for index, primitive in enumerate(action.primitives):
        if primitive.op in ("_jump", "_jump_if_zero"):
            target = primitive.parameters[-1]
            assert isinstance(target, ir.Const)
            yield index, target.value


def _only_writes(primitive: ir.Primitive, ref: ir.FieldRef) -> bool:
    written = DESTINATIONS.get(primitive.op)
    return written is not None and all(
        (i == written) == (ref in list(_scalars(e))) for i, e in enumerate(primitive.parameters)
    )


# --------------------------------------------------------------------- allocation


def _allocate(lives: list[Life], names: Names) -> Mapping:
    """Linear scan: a field is free again after its variable's last access."""
    slots: dict[tuple[int, bool], list[tuple[int, list[Life]]]] = {}
    for life in sorted(lives, key=lambda item: item.first):
        pool = slots.setdefault((life.ref.width, life.ref.signed), [])
        free = next((i for i, (until, _) in enumerate(pool) if until < life.first), None)
        if free is None:
            pool.append((life.last, [life]))
        else:
            pool[free] = (life.last, [*pool[free][1], life])
    mapping: Mapping = {}
    for (width, signed), pool in slots.items():
        for _, members in pool:
            if len(members) > 1:
                shared = ir.FieldRef(SCALARS, names.unique(f"shared_{width}"), width, signed)
                mapping.update((member.ref, shared) for member in members)
    return mapping


def _rewrite(action: ir.Action, mapping: Mapping) -> None:
    for primitive in action.primitives:
        primitive.parameters = tuple(replaced(e, mapping) for e in primitive.parameters)


def replaced(expr: ir.Expr, mapping: Mapping) -> ir.Expr:
    """expr with fields exchanged."""
    if isinstance(expr, ir.FieldRef):
        return mapping.get(expr, expr)
    if isinstance(expr, ir.Op):
        left = None if expr.left is None else replaced(expr.left, mapping)
        condition = None if expr.condition is None else replaced(expr.condition, mapping)
        return ir.Op(expr.op, left, replaced(expr.right, mapping), condition)
    if isinstance(expr, ir.Access):
        base = replaced(expr.base, mapping)
        return ir.Access(expr.op, base, expr.offset, expr.width, expr.signed)
    if isinstance(expr, ir.Vector):
        return ir.Vector(tuple(replaced(e, mapping) for e in expr.items))
    return expr
