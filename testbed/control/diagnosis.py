"""Who is missing in a round that does not end: from what workers wait for and what switches hold.

A worker waits for the result of a chunk in a slot under a tag. The cell of that slot and set tells,
at each switch of the job's tree, whose contributions it has: who is not there never sent it, or it
never arrived. Where nobody is missing at the root, whoever waits never heard the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agglab.testbed.plan import Branch, Tree

RANGES_MAX = 8

Waiting = tuple[int, int, int]
"""Chunk, slot, tag."""


class Registers(Protocol):
    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None: ...


@dataclass
class Absent:
    """What one host or switch owes: chunks it never sent (up), results it never heard."""

    never_sent: set[int] = field(default_factory=set)
    never_heard: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        return len(self.never_sent) + len(self.never_heard)

    def __str__(self) -> str:
        parts = []
        if self.never_sent:
            parts.append(f"never sent {spans(self.never_sent)}")
        if self.never_heard:
            parts.append(f"never heard the sum of {spans(self.never_heard)}")
        return " and ".join(parts)


def diagnose(
    source: Registers, tree: Tree, first_slot: int, waiting: Mapping[str, Iterable[Waiting]]
) -> dict[str, Absent]:
    """Host or switch -> what it owes, who owes most first. waiting: host -> what it waits for."""
    found: dict[str, Absent] = {}
    hosts: dict[Waiting, set[str]] = {}
    for host, entries in waiting.items():
        for entry in entries:
            hosts.setdefault((entry[0], entry[1], entry[2]), set()).add(host)
    present = _present(source, tree, first_slot, list(hosts))
    if present is None:
        return {}
    for entry, waiters in hosts.items():
        absent = list(_absent(tree, tree.branches[tree.root], entry, present))
        for name in absent:
            found.setdefault(name, Absent()).never_sent.add(entry[0])
        if not absent:
            for host in waiters:
                found.setdefault(host, Absent()).never_heard.add(entry[0])
    return dict(sorted(found.items(), key=lambda item: -item[1].count))


Present = Mapping[tuple[str, Waiting], int]
"""(switch, what is waited for) -> bitmap of the children whose contributions are there."""


def _present(
    source: Registers, tree: Tree, first_slot: int, entries: Sequence[Waiting]
) -> Present | None:
    cells = [(first_slot + slot) << 1 | (tag & 1) for _, slot, tag in entries]
    present: dict[tuple[str, Waiting], int] = {}
    for switch in tree.branches:
        tags = source.registers(switch, "tags", cells)
        bitmaps = source.registers(switch, "contributors", cells)
        if tags is None or bitmaps is None:
            return None
        for entry, tag, bitmap in zip(entries, tags, bitmaps, strict=True):
            present[switch, entry] = bitmap if tag == entry[2] else 0
    return present


def _absent(tree: Tree, branch: Branch, entry: Waiting, present: Present) -> Iterator[str]:
    """The lowest nodes whose part is missing at the switch above them."""
    bitmap = present[branch.switch, entry]
    for bit, (_, node) in enumerate(branch.children):
        if bitmap >> bit & 1:
            continue
        below = tree.branches.get(node)
        lower = list(_absent(tree, below, entry, present)) if below else []
        yield from lower or [node]


def spans(chunks: Iterable[int]) -> str:
    """`chunk 7`, `chunks 3, 8-12`."""
    runs: list[list[int]] = []
    for chunk in sorted(chunks):
        if runs and chunk == runs[-1][1] + 1:
            runs[-1][1] = chunk
        else:
            runs.append([chunk, chunk])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:RANGES_MAX]]
    more = f" and {len(runs) - RANGES_MAX} more ranges" if len(runs) > RANGES_MAX else ""
    single = len(runs) == 1 and runs[0][0] == runs[0][1]
    return f"chunk{'' if single else 's'} {', '.join(shown)}{more}"
