"""Finds who blocks a round that does not end, from what workers wait for, what switches hold, and
what links have lost.

A worker waits for the result of a chunk in a slot with a tag. As a slot takes one chunk after the
other, the oldest tag that somebody waits for in a slot is the one that blocks; chunks with later
tags wait behind it. At each switch of the job's tree, the cell of the slot and set shows whose
contributions have arrived.

A link cannot have lost more packets than it counted. If a worker sent a chunk more often than its
link lost packets, the switch received the chunk; if the switch held its sum, it did not answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agglab.hosts.agent_core import WAITING_MAX
from agglab.testbed.systems.base import Evidence, MissingChunks, Registers
from agglab.testbed.systems.lost_on_links import LostOnLinks, losses
from agglab.testbed.systems.plan import Branch, Tree

Waiting = tuple[int, ...]
"""A chunk, its slot, its tag, and how often the worker has sent it again (0 if absent). If slots
have more than two sets, their number follows; a switch then keeps a result until it knows
(`informed`) that all workers have it."""
HALF = 2**31
NAMED_MAX = 4


class Awaited(NamedTuple):
    """A chunk for whose sum workers wait. sets: how many sets a slot has."""

    chunk: int
    slot: int
    tag: int
    sets: int

    @classmethod
    def of(cls, entry: Waiting) -> Awaited:
        chunk, slot, tag = entry[:3]
        return cls(chunk, slot, tag, entry[4] if len(entry) > 4 else 2)

    @property
    def has_deadline(self) -> bool:
        return self.sets > 2


Waiters = dict[Awaited, dict[str, int]]
"""For each awaited chunk, how often each host that waits for it has sent it again."""


def diagnose(
    source: Evidence, tree: Tree, first_slot: int, waiting: Mapping[str, Iterable[Waiting]]
) -> dict[str, MissingChunks]:
    """Returns what each host or switch owes. Switches that are proven to be at fault come first,
    then the one that owes most. waiting: what the workers on each host wait for."""
    waits = {host: list(entries) for host, entries in waiting.items()}
    waiters = _waiters(waits)
    present = _present(source, tree, first_slot, list(waiters))
    if present is None:
        return {}
    blocking = _blocking(waiters)
    finals = _finals(source, tree, first_slot, list(blocking))
    case = _Case(tree, present, finals, waits, blocking, losses(source.statistics()))
    for awaited in sorted(blocking, key=lambda each: each.chunk):
        case.judge(awaited)
    owing = dict(sorted(case.owing.items(), key=lambda each: (-each[1].is_proven, -each[1].count)))
    blamed = {awaited.chunk for awaited in case.first}
    for missing in list(owing.values())[:1]:
        missing.behind = len({awaited.chunk for awaited in waiters} - blamed)
    return owing


def _waiters(waits: Mapping[str, Sequence[Waiting]]) -> Waiters:
    waiters: Waiters = {}
    for host, entries in waits.items():
        for entry in entries:
            again = entry[3] if len(entry) > 3 else 0
            waiters.setdefault(Awaited.of(entry), {})[host] = again
    return waiters


def _blocking(waiters: Waiters) -> Waiters:
    """Returns the oldest chunk of each slot, in the order in which workers named them. If a job has
    a deadline, its workers need not wait for each other, and each chunk counts."""
    oldest: dict[int, Awaited] = {}
    for awaited in waiters:
        other = oldest.setdefault(awaited.slot, awaited)
        if 0 < (other.tag - awaited.tag) % 2**32 < HALF:
            oldest[awaited.slot] = awaited
    return {
        awaited: hosts
        for awaited, hosts in waiters.items()
        if awaited.has_deadline or oldest[awaited.slot] == awaited
    }


Present = Mapping[tuple[str, Awaited], int]
"""The children whose contributions have arrived, as bits, by (switch, what is waited for)."""


def _present(
    source: Registers, tree: Tree, first_slot: int, entries: Sequence[Awaited]
) -> Present | None:
    cells = [_cell(first_slot, entry, entry.tag) for entry in entries]
    present: dict[tuple[str, Awaited], int] = {}
    for switch in tree.branches:
        tags = source.registers(switch, "tags", cells)
        bitmaps = source.registers(switch, "contributors", cells)
        if tags is None or bitmaps is None:
            return None
        for entry, tag, bitmap in zip(entries, tags, bitmaps, strict=True):
            present[switch, entry] = bitmap if tag == entry.tag else 0
            if entry.has_deadline and tag == (entry.tag - entry.sets) % 2**32:
                present[switch, entry] = _informed(source, switch, first_slot, entry)
    return present


def _finals(
    source: Registers, tree: Tree, first_slot: int, entries: Sequence[Awaited]
) -> Mapping[tuple[str, Awaited], int]:
    """Returns whether switches below the root have the sum of a chunk, by (switch, chunk)."""
    cells = [_cell(first_slot, entry, entry.tag) for entry in entries]
    return {
        (switch, entry): final
        for switch, branch in tree.branches.items()
        if branch.parent
        for entry, final in zip(
            entries, source.registers(switch, "finals", cells) or [0] * len(cells), strict=True
        )
    }


def _cell(first_slot: int, entry: Awaited, tag: int) -> int:
    return (first_slot + entry.slot) * entry.sets + tag % entry.sets


def _informed(source: Registers, switch: str, first_slot: int, entry: Awaited) -> int:
    """Returns who is known to have the result that the cell of an awaited packet still holds."""
    earlier = [(entry.tag - distance) % 2**32 for distance in range(1, entry.sets + 1)]
    cells = [_cell(first_slot, entry, tag) for tag in earlier]
    tags = source.registers(switch, "tags", cells) or []
    informed = source.registers(switch, "informed", cells) or []
    known = 0
    for wanted, tag, workers in zip(earlier, tags, informed, strict=True):
        known |= workers if tag == wanted else 0
    return known


@dataclass
class _Case:
    """What is known about a round, and who owes what because of it. first: for each chunk that
    blocks, whether somebody has been blamed for it yet."""

    tree: Tree
    present: Present
    finals: Mapping[tuple[str, Awaited], int]
    waits: Mapping[str, Sequence[Waiting]]
    blocking: Waiters
    lost: LostOnLinks
    owing: dict[str, MissingChunks] = field(default_factory=dict)
    first: set[Awaited] = field(default_factory=set)

    def judge(self, awaited: Awaited) -> None:
        """Blames those who owe the contribution or the sum of a chunk that blocks."""
        missing = list(self._missing(self.tree.branches[self.tree.root], awaited))
        for switch, node in missing:
            self._blame_for_contribution(awaited, switch, node)
        for host in self.blocking[awaited] if not missing else ():
            self._blame_for_sum(awaited, host)

    def _missing(self, branch: Branch, awaited: Awaited) -> Iterator[tuple[str, str]]:
        """Yields the lowest nodes of the tree whose contribution is missing, each with the switch
        above it that lacks it."""
        bitmap = self.present[branch.switch, awaited]
        for bit, (_, node) in enumerate(branch.children):
            if bitmap >> bit & 1:
                continue
            below = self.tree.branches.get(node)
            lower = list(self._missing(below, awaited)) if below else []
            yield from lower or [(branch.switch, node)]

    def _blame_for_contribution(self, awaited: Awaited, switch: str, node: str) -> None:
        again = self.blocking[awaited].get(node)
        if node in self.tree.branches:
            self._blame(node, "never_delivered", awaited, switch)
        elif again is None:
            if not self._is_held_up(node, awaited):
                self._blame(node, "never_sent", awaited, switch)
        elif again + 1 > self.lost.upwards(node, switch) and not awaited.has_deadline:
            times = f"{node} sent it {again + 1} times"
            self._blame(switch, "not_taken", awaited, switch, times)
        else:
            self._blame(node, "never_delivered", awaited, switch)

    def _is_held_up(self, host: str, awaited: Awaited) -> bool:
        """Returns whether a host cannot have sent a chunk because it waits for an earlier one, or
        whether its list of what it waits for is too full to tell."""
        waits = self.waits.get(host, ())
        is_full = len(waits) >= WAITING_MAX and waits[-1][1] < awaited.slot
        return is_full or any(entry[0] < awaited.chunk for entry in waits)

    def _blame_for_sum(self, awaited: Awaited, host: str) -> None:
        hops = self._way_to_sum(awaited, host)
        asked = self.blocking[awaited][host]
        is_certain = self._passes_on(hops) and not awaited.has_deadline
        if is_certain and asked > sum(self.lost.both_ways(*hop) for hop in hops):
            _, switch = hops[-1]
            times = f"{host} asked for the sum {asked} times and got no answer"
            self._blame(switch, "not_answered", awaited, switch, times)
        else:
            self._blame(host, "never_heard", awaited, hops[0][1])

    def _way_to_sum(self, awaited: Awaited, host: str) -> list[tuple[str, str]]:
        """Returns the hops, as (node, switch), from a host to the first switch that has the sum."""
        branch = next(each for each in self.tree.branches.values() if host in _nodes(each))
        hops = [(host, branch.switch)]
        while branch.parent and not self.finals.get((branch.switch, awaited)):
            _, above = branch.parent
            hops.append((branch.switch, above))
            branch = self.tree.branches[above]
        return hops

    def _passes_on(self, hops: Sequence[tuple[str, str]]) -> bool:
        """Returns whether requests go this way. If switches ask the one above them for a sum, they
        do so only when their first child asks."""
        return len(hops) == 1 or all(
            _nodes(self.tree.branches[switch])[0] == node for node, switch in hops[:-1]
        )

    def _blame(self, name: str, way: str, awaited: Awaited, switch: str, times: str = "") -> None:
        missing = self.owing.setdefault(name, MissingChunks())
        if not missing.slot:
            missing.slot = ", ".join(filter(None, [self._slot(awaited, switch), times]))
        getattr(missing, way).add(awaited.chunk)
        self.first.add(awaited)

    def _slot(self, awaited: Awaited, switch: str) -> str:
        """Returns in words what a switch holds of an awaited chunk."""
        bitmap = self.present[switch, awaited]
        nodes = _nodes(self.tree.branches[switch])
        absent = [node for bit, node in enumerate(nodes) if not bitmap >> bit & 1]
        some = f"{len(nodes) - len(absent)} of {len(nodes)}"
        more = f" and {len(absent) - NAMED_MAX} more" if len(absent) > NAMED_MAX else ""
        lacks = f", not {', '.join(absent[:NAMED_MAX])}{more}" if absent else ""
        place = f"slot {awaited.slot} of {switch} holds {some} contributions to chunk"
        final = " and the final sum" if self.finals.get((switch, awaited)) else ""
        return f"{place} {awaited.chunk} (tag {awaited.tag}{lacks}){final}"


def _nodes(branch: Branch) -> list[str]:
    return [node for _, node in branch.children]
