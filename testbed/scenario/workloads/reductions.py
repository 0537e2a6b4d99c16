"""Divides the work of a round into all-reduces. A round is one all-reduce, or several consecutive
ones, and the system plans each as if it were a separate job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from agglab.hosts.endpoint import PRESENCE
from agglab.hosts.workloads import Iterated
from agglab.testbed.systems.base import (
    ActiveJob,
    Array,
    Bounds,
    ByteRange,
    Cells,
    ResolvedScenario,
)
from agglab.testbed.systems.received_arrays import Received

NS_PER_S = 1_000_000_000


def active(job: ActiveJob) -> list[ActiveJob]:
    """Returns the all-reduces of a round as jobs with the same members."""
    return [replace(job, job=each) for each in job.job.by_all_reduce()]


def first_chunks(
    resolved: ResolvedScenario, parts: Sequence[ActiveJob], order: Iterable[int]
) -> list[int]:
    """Returns for each all-reduce the number of its first chunk in the round, in which they follow
    each other in this order."""
    first, found = 0, [0] * len(parts)
    for number in order:
        found[number] = first
        first += resolved.system.chunks(resolved.scenario, parts[number].job)
    return found


def presence_of(one: Received, first: int, chunks: int) -> Mapping[str, Array]:
    """Returns, as `Received.more`, who is in the sums of these chunks of a round, if the worker has
    left that."""
    whole = one.more.get(PRESENCE)
    return {} if whole is None else {PRESENCE: whole[first : first + chunks]}


def round_bytes(resolved: ResolvedScenario, job: ActiveJob, number: int) -> Mapping[str, int]:
    """Returns the sum of System.round_bytes over all all-reduces of a round."""
    found: Counter[str] = Counter()
    for each in active(job):
        found.update(resolved.system.round_bytes(resolved, each, number))
    return found


def bounds(resolved: ResolvedScenario, job: ActiveJob) -> Bounds:
    """Returns the bounds of a whole round (see System.bounds). The time of the round is bounded as
    if each bucket took exactly its bound."""
    found, work = [resolved.system.bounds(resolved, each) for each in active(job)], job.job.work
    if not isinstance(work, Iterated):
        return found[0]

    def round_s(of: Callable[[Bounds], float]) -> float:
        return work.iteration_ns([of(each) * NS_PER_S for each in found]) / NS_PER_S

    return Bounds(
        payload_s=round_s(lambda each: each.payload_s),
        link_s=round_s(lambda each: each.link_s),
        lossy_s=round_s(lambda each: each.lossy_s),
        window_share=min(each.window_share for each in found),
    )


def bounds_of_first(resolved: ResolvedScenario, job: ActiveJob, rounds: int) -> Bounds:
    """Returns the bounds of the first rounds alone. As many as `rounds` are regarded, at least one
    and at most all."""
    regarded = min(max(1, rounds), job.job.rounds)
    return bounds(resolved, replace(job, job=replace(job.job, rounds=regarded)))


def extra_bytes(
    resolved: ResolvedScenario, job: ActiveJob, host: str, counts: Mapping[str, int]
) -> ByteRange:
    """Returns the sum of System.extra_bytes over all buckets. The counts are those of all buckets
    together, and are assigned to the first bucket."""
    parts, nothing = active(job), Counter[str]()
    found = [resolved.system.extra_bytes(resolved, parts[0], host, counts)]
    found += [resolved.system.extra_bytes(resolved, each, host, nothing) for each in parts[1:]]
    return _sum(found)


def retransmitted_bytes(
    resolved: ResolvedScenario,
    job: ActiveJob,
    more: Mapping[str, int],
    counters: Mapping[str, Mapping[str, Cells]],
) -> Mapping[str, ByteRange]:
    """Returns the sum of System.retransmitted_bytes over all buckets. The bytes and counters
    are those of all buckets together, and are assigned to the first bucket."""
    parts, system = active(job), resolved.system
    nothing: Mapping[str, Mapping[str, Cells]] = {switch: {} for switch in counters}
    found = [system.retransmitted_bytes(resolved, parts[0], more, counters)]
    for each in parts[1:]:
        found.append(system.retransmitted_bytes(resolved, each, dict.fromkeys(more, 0), nothing))
    names = dict.fromkeys(name for ways in found for name in ways)
    return {name: _sum(ways[name] for ways in found if name in ways) for name in names}


def _sum(found: Iterable[ByteRange]) -> ByteRange:
    least = most = 0
    for each in found:
        least, most = least + each.least, most + each.most
    return ByteRange(least, most)
