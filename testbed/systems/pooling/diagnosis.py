"""Finds who is missing in a round that does not end, from what workers wait for, what the server
lacks, and what slots hold.

A worker waits for the result of a chunk, given by slot and tag. For each tag that has reached the
server, the server knows whose values are missing. Values that a slot holds for the tag were sent,
but have not reached the server. If nobody's values are missing, the waiting workers never received
the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agglab.testbed.plan import Tree
from agglab.testbed.systems.base import ActiveJob, MissingChunks, Registers, Waiting

JOB_AT, TAG_BITS = 96, 0xFFFFFFFF
"""The position of the job and the bits of the tag in a cell of the register `owners`
(p4/include/pooling.p4)."""


def diagnose(
    source: Registers,
    tree: Tree,
    job: ActiveJob,
    waiting: Mapping[str, Iterable[Waiting]],
    unserved: Iterable[Waiting],
) -> dict[str, MissingChunks]:
    """Returns what each host owes; the one that owes most comes first. unserved: what the server
    waits for, as [tag, rank, ...]."""
    ranks = {host: rank for rank, host in enumerate(job.hosts)}
    lacking = {tag: set(missing) for tag, *missing in unserved}
    found: dict[str, MissingChunks] = {}
    waits: dict[tuple[int, int, int], list[str]] = {}
    for host, entries in waiting.items():
        for chunk, slot, tag in entries:
            waits.setdefault((chunk, slot, tag), []).append(host)
    held = _held(source, tree, job, list(waits))
    if held is None:
        return {}
    for (chunk, slot, tag), waiters in waits.items():
        missing = set(lacking.get(tag, range(len(job.hosts))))
        missing -= {rank for rank in missing if held[chunk, slot, tag] >> rank & 1}
        owing = [host for host in job.hosts if ranks[host] in missing]
        # Who waits has sent its values, though they did not arrive; who does not wait owes them.
        silent = [host for host in owing if host not in waiting]
        for host in silent or owing:
            found.setdefault(host, MissingChunks()).never_sent.add(chunk)
        if not owing:
            for host in waiters:
                found.setdefault(host, MissingChunks()).never_heard.add(chunk)
    return dict(sorted(found.items(), key=lambda item: -item[1].count))


def _held(
    source: Registers, tree: Tree, job: ActiveJob, waits: list[tuple[int, int, int]]
) -> dict[tuple[int, int, int], int] | None:
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
