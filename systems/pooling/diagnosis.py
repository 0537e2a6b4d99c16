"""Finds who blocks a round that does not end, from what workers wait for, what the server lacks,
what slots hold, and what links have lost.

A worker waits for the result of a chunk, given by slot and tag. For each tag that has reached the
server, the server knows whose values are missing. Values that a slot holds for the tag were sent,
but have not reached the server. If nobody's values are missing, the waiting workers never received
the result.

A worker sends its chunks in their order. One that waits only for later chunks has the sum of this
one; one that waits for an earlier chunk may not have been allowed to send this one yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agglab.testbed.systems.base import ActiveJob, Evidence, MissingChunks, Registers, Waiting
from agglab.testbed.systems.lost_on_links import LostOnLinks, losses
from agglab.testbed.systems.plan import Tree

JOB_AT, TAG_BITS = 96, 0xFFFFFFFF
"""The position of the job and the bits of the tag in a cell of the register `owners`
(p4/include/pooling_headers.p4)."""

Chunk = tuple[int, int, int]
"""A chunk, its slot and its tag."""


def diagnose(
    source: Evidence,
    tree: Tree,
    job: ActiveJob,
    waiting: Mapping[str, Iterable[Waiting]],
    unserved: Iterable[Waiting],
    server: str,
) -> dict[str, MissingChunks]:
    """Returns what each host or switch owes. A switch that is proven to be at fault comes first,
    then the one that owes most. waiting: what workers wait for, as [chunk, slot, tag, how often it
    was sent again]. unserved: what the server waits for, as [tag, rank, ...]. server: its host."""
    waits = {
        host: {(chunk, slot, tag): sum(again) for chunk, slot, tag, *again in entries}
        for host, entries in waiting.items()
    }
    chunks = sorted({chunk for entries in waits.values() for chunk in entries})
    held = _held(source, tree, job, chunks)
    if held is None:
        return {}
    lacking = {tag: set(missing) for tag, *missing in unserved}
    case = _Case(tree, job, waits, lacking, held, losses(source.statistics()), server)
    for chunk in chunks:
        case.judge(chunk)
    owing = dict(sorted(case.owing.items(), key=lambda each: (-each[1].is_proven, -each[1].count)))
    for missing in list(owing.values())[:1]:
        missing.behind = len(chunks) - len(case.blocking)
    return owing


@dataclass
class _Case:
    """What is known about a round, and who owes what because of it. waits: for each host, how often
    it has sent each awaited chunk again. blocking: the chunks for which anybody is to blame."""

    tree: Tree
    job: ActiveJob
    waits: Mapping[str, Mapping[Chunk, int]]
    lacking: Mapping[int, set[int]]
    held: Mapping[Chunk, int]
    lost: LostOnLinks
    server: str
    owing: dict[str, MissingChunks] = field(default_factory=dict)
    blocking: set[Chunk] = field(default_factory=set)

    def judge(self, chunk: Chunk) -> None:
        """Blames those who owe the values or the result of a chunk that workers wait for."""
        hosts = [host for rank, host in enumerate(self.job.hosts) if self._lacks(rank, chunk)]
        if not hosts or any(self._has_sum(host, chunk) for host in self.job.hosts):
            self._blame_for_sum(chunk)
            return
        # Who waits has sent its values, though they did not arrive; who does not wait owes them.
        absent = [host for host in hosts if chunk not in self.waits.get(host, {})]
        free = [host for host in absent if not self._is_held_up(host, chunk)]
        for host in free:
            self._blame(host, "never_sent", chunk)
        for host in hosts if not absent else ():
            self._blame(host, "never_delivered", chunk)

    def _lacks(self, rank: int, chunk: Chunk) -> bool:
        """Returns whether the values of a worker are neither at the server nor in a slot."""
        missing = self.lacking.get(chunk[2])
        at_server = missing is not None and rank not in missing
        return not at_server and not self.held[chunk] >> rank & 1

    def _has_sum(self, host: str, chunk: Chunk) -> bool:
        waits = self.waits.get(host, {})
        return chunk not in waits and min(waits, default=chunk) > chunk

    def _is_held_up(self, host: str, chunk: Chunk) -> bool:
        return any(other < chunk for other in self.waits.get(host, {}))

    def _blame_for_sum(self, chunk: Chunk) -> None:
        root, is_only = self.tree.root, len(self.tree.branches) == 1
        for host, waits in self.waits.items():
            if chunk not in waits:
                continue
            lost = self.lost.both_ways(host, root) + self.lost.both_ways(self.server, root)
            if is_only and host != self.server and waits[chunk] > lost:
                times = f"{host} asked for the sum {waits[chunk]} times and got no answer"
                self._blame(root, "not_answered", chunk, times)
            else:
                self._blame(host, "never_heard", chunk)

    def _blame(self, name: str, way: str, chunk: Chunk, times: str = "") -> None:
        missing = self.owing.setdefault(name, MissingChunks())
        if not missing.slot:
            missing.slot = ", ".join(filter(None, [self._slot(chunk), times]))
        getattr(missing, way).add(chunk[0])
        self.blocking.add(chunk)

    def _slot(self, chunk: Chunk) -> str:
        """Returns in words what slots and the server hold of a chunk."""
        number, slot, tag = chunk
        held = self.held[chunk].bit_count()
        all_of = len(self.job.hosts)
        switches = "the switches hold" if len(self.tree.branches) > 1 else f"{self.tree.root} holds"
        server = "" if tag not in self.lacking else f", the server lacks {len(self.lacking[tag])}"
        where = f"in slot {slot} {switches} {held} of {all_of} contributions to chunk {number}"
        return f"{where} (tag {tag}){server}"


def _held(
    source: Registers, tree: Tree, job: ActiveJob, waits: Sequence[Chunk]
) -> dict[Chunk, int] | None:
    """Returns for each chunk the members whose values the slots of the job's switches hold, as
    bits; None if a switch cannot be read."""
    held = dict.fromkeys(waits, 0)
    slots = [slot for _, slot, _ in waits]
    for switch in tree.branches:
        owners = source.registers(switch, "owners", slots)
        bitmaps = source.registers(switch, "contributors", slots)
        if owners is None or bitmaps is None:
            return None
        for entry, owner, bitmap in zip(waits, owners, bitmaps, strict=True):
            if owner >> JOB_AT == job.job.number and owner & TAG_BITS == entry[2]:
                held[entry] |= bitmap
    return held
