"""Finds who is missing in a round that does not end. It compares what workers wait for with what
the switch that executes their calls has received from each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agglab.hosts.systems.netrpc import wire
from agglab.testbed.systems.base import ActiveJob, MissingChunks, Registers, Waiting
from agglab.testbed.systems.netrpc.plan import WORKERS_MAX


def diagnose(
    source: Registers, root: str, job: ActiveJob, waiting: Mapping[str, Iterable[Waiting]]
) -> dict[str, MissingChunks]:
    """Returns what each host owes (see System.diagnose). A worker waits for [chunk, position,
    sequence number].

    If another worker has not reached this number at the position, it never sent the call. If all
    workers have, the waiting worker never received the answer.
    """
    found: dict[str, MissingChunks] = {}
    waiters: dict[tuple[int, ...], list[str]] = {}
    for host, entries in waiting.items():
        for entry in entries:
            waiters.setdefault(tuple(entry), []).append(host)
    for (chunk, position, sequence), hosts in waiters.items():
        if position >= wire.POSITIONS:
            continue
        heard = _heard(source, root, job, position)
        if heard is None:
            return {}
        missing = [host for host, last in heard.items() if _behind(last, sequence)]
        for host in missing:
            found.setdefault(host, MissingChunks()).never_sent.add(chunk)
        for host in hosts if not missing else ():
            found.setdefault(host, MissingChunks()).never_heard.add(chunk)
    return dict(sorted(found.items(), key=lambda item: -item[1].count))


def _heard(source: Registers, root: str, job: ActiveJob, position: int) -> Mapping[str, int] | None:
    """Returns the last sequence number that the switch received from each member at a position."""
    flows = [(job.index * WORKERS_MAX + rank) * wire.POSITIONS for rank in job.members]
    read = source.registers(root, "sequences", [flow + position for flow in flows])
    return None if read is None else dict(zip(job.hosts, read, strict=True))


def _behind(last: int, sequence: int) -> bool:
    """Returns whether the serial number `last` is before `sequence`; 0 means that there is none."""
    return last == 0 or 0 < (sequence - last) % 2**32 < 2**31
