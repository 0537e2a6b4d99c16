"""Lets variables of one action that are never alive together share a field of `scalars`.

BMv2 and our switch pay for every bit of metadata of every packet. Without this pass, a program that
reads wide registers into one variable after another carries all of them.
"""

from __future__ import annotations

from p4native.compiler.backend import ir
from p4native.compiler.backend.liveness import LiveRange, live_ranges_of, private_fields, replaced
from p4native.compiler.backend.storage import SCALARS, Names

Mapping = dict[ir.FieldRef, ir.FieldRef]


def share_variables(program: ir.Program, user_fields: set[str]) -> None:
    """Replaces variables of actions by fields that they share. user_fields: names of scalars that
    belong to the program's own metadata and are left alone."""
    scalars = next(t for t in program.header_types if t.name == f"{SCALARS}_0")
    names = Names()
    for name, _, _ in scalars.fields:
        names.unique(name)
    private = private_fields(program, user_fields)
    merged: set[str] = set()
    for action in program.actions:
        live_ranges = [
            live_range for live_range in live_ranges_of(action) if live_range.ref.field in private
        ]
        mapping = _allocate(live_ranges, names)
        if mapping:
            _rewrite(action, mapping)
            merged |= {ref.field for ref in mapping}
            scalars.fields += [
                (ref.field, ref.width, ref.signed) for ref in dict.fromkeys(mapping.values())
            ]
    scalars.fields = [f for f in scalars.fields if f[0] not in merged]


def _allocate(live_ranges: list[LiveRange], names: Names) -> Mapping:
    """Assigns fields to variables by a linear scan. A field is free again after the last access to
    its variable."""
    slots: dict[tuple[int, bool], list[tuple[int, list[LiveRange]]]] = {}
    for live_range in sorted(live_ranges, key=lambda item: item.first):
        pool = slots.setdefault((live_range.ref.width, live_range.ref.signed), [])
        free = next((i for i, (until, _) in enumerate(pool) if until < live_range.first), None)
        if free is None:
            pool.append((live_range.last, [live_range]))
        else:
            pool[free] = (live_range.last, [*pool[free][1], live_range])
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
