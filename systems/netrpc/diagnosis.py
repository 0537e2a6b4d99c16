"""Finds who blocks a round that does not end. It compares what workers wait for with what the
switch that executes their calls has received from each, and with what links have lost.

Each worker makes one call after the other at a position. Of the calls that workers wait for at a
position of a gather, the oldest one therefore blocks, and later ones wait behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agglab.hosts.workloads.calls import Calls
from agglab.systems.netrpc import wire
from agglab.systems.netrpc.plan import WORKERS_MAX
from agglab.testbed.systems.base import ActiveJob, Evidence, MissingChunks, Registers, Waiting
from agglab.testbed.systems.lost_on_links import LostOnLinks, losses

Call = tuple[int, int, int]
"""A chunk, the position of its call, and the call's sequence number."""
HALF = 2**31


def diagnose(
    source: Evidence, root: str, job: ActiveJob, waiting: Mapping[str, Iterable[Waiting]]
) -> dict[str, MissingChunks]:
    """Returns what each host owes (see System.diagnose). A worker waits for [chunk, position,
    sequence number, how often the call was sent again].

    If another worker has not reached this number at the position, it never sent the call. If all
    workers have, the waiting worker never received the answer. Calls of an application are
    answered one by one, so that no other worker can be missing.
    """
    waiters: dict[Call, dict[str, int]] = {}
    for host, entries in waiting.items():
        for chunk, position, sequence, *again in entries:
            if position < wire.POSITIONS:
                waiters.setdefault((chunk, position, sequence), {})[host] = sum(again)
    gathers = not isinstance(job.job.work, Calls)
    blocking = _oldest(waiters) if gathers else waiters
    evidence = _Evidence(root, losses(source.statistics()), {})
    for call in sorted(blocking):
        arrived = _arrived(source, root, job, call[1])
        if arrived is None:
            return {}
        waits = blocking[call]
        callers = arrived if gathers else {host: arrived[host] for host in waits}
        evidence.judge(call, waits, [host for host in callers if _behind(arrived[host], call[2])])
    owing = evidence.owing.items()
    ordered = dict(sorted(owing, key=lambda each: (-each[1].is_proven, -each[1].count)))
    for missing in list(ordered.values())[:1]:
        missing.behind = len(waiters) - len(blocking)
    return ordered


def _oldest(waiters: Mapping[Call, dict[str, int]]) -> dict[Call, dict[str, int]]:
    """Returns the oldest call at each position."""
    oldest: dict[int, Call] = {}
    for call in waiters:
        other = oldest.setdefault(call[1], call)
        if 0 < (other[2] - call[2]) % 2**32 < HALF:
            oldest[call[1]] = call
    return {call: hosts for call, hosts in waiters.items() if oldest[call[1]] == call}


@dataclass
class _Evidence:
    """What is known about a round, and who owes what because of it."""

    root: str
    lost: LostOnLinks
    owing: dict[str, MissingChunks]

    def judge(self, call: Call, waits: Mapping[str, int], missing: list[str]) -> None:
        """Blames those who owe a call or its answer. waits: how often each waiting host has sent
        the call again. missing: the hosts whose call has not arrived."""
        for host in missing:
            self._blame(host, "never_delivered" if host in waits else "never_sent", call, missing)
        for host, asked in waits.items() if not missing else ():
            if asked > self.lost.both_ways(host, self.root) and self.lost.knows(host, self.root):
                times = f", {host} called {asked} more times and got no answer"
                self._blame(self.root, "not_answered", call, missing, times)
            else:
                self._blame(host, "never_heard", call, missing)

    def _blame(self, name: str, way: str, call: Call, missing: list[str], times: str = "") -> None:
        chunk, position, sequence = call
        owes = self.owing.setdefault(name, MissingChunks())
        lacks = f"all but {len(missing)} calls" if missing else "all calls"
        at = f"at position {position} {self.root} has {lacks} with the number {sequence}"
        owes.slot = owes.slot or f"{at}{times}"
        getattr(owes, way).add(chunk)


def _arrived(
    source: Registers, root: str, job: ActiveJob, position: int
) -> Mapping[str, int] | None:
    """Returns the last sequence number that the switch received from each member at a position."""
    flows = [(job.index * WORKERS_MAX + rank) * wire.POSITIONS for rank in job.members]
    read = source.registers(root, "sequences", [flow + position for flow in flows])
    return None if read is None else dict(zip(job.hosts, read, strict=True))


def _behind(last: int, sequence: int) -> bool:
    """Returns whether the serial number `last` is before `sequence`; 0 means that there is none."""
    return last == 0 or 0 < (sequence - last) % 2**32 < HALF
