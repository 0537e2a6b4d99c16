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
    Counts,
    ResolvedScenario,
    Traffic,
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


def bounds(resolved: ResolvedScenario, job: ActiveJob) -> Bounds | None:
    """Returns the bounds of a whole round, as if each bucket took exactly its bound; None if they
    are unknown (see System.bounds)."""
    parts, work = [resolved.system.bounds(resolved, each) for each in active(job)], job.job.work
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None
    if not isinstance(work, Iterated):
        return known[0]

    def round_s(of: Callable[[Bounds], float]) -> float:
        return work.iteration_ns([of(each) * NS_PER_S for each in known]) / NS_PER_S

    return Bounds(
        payload_s=round_s(lambda each: each.payload_s),
        link_s=round_s(lambda each: each.link_s),
        lossy_s=round_s(lambda each: each.lossy_s),
        window_share=min(each.window_share for each in known),
    )


def bounds_of_first(resolved: ResolvedScenario, job: ActiveJob, rounds: int) -> Bounds | None:
    """Returns the bounds of the first rounds alone. As many as `rounds` are regarded, at least one
    and at most all. None if they are unknown."""
    regarded = min(max(1, rounds), job.job.rounds)
    return bounds(resolved, replace(job, job=replace(job.job, rounds=regarded)))


def traffic(resolved: ResolvedScenario, job: ActiveJob) -> Traffic:
    """Returns the traffic of whole rounds (see Traffic): the sum over all all-reduces. What agents
    and switches counted is that of all of them together, and is assigned to the first. Raises
    Unpredictable."""
    parts = [resolved.system.traffic(resolved, each) for each in active(job)]
    if len(parts) == 1:
        return parts[0]
    first, *others = parts

    def of_round(number: int) -> Mapping[str, int]:
        total: Counter[str] = Counter()
        for each in parts:
            total.update(each.of_round(number))
        return total

    def extra_bytes(host: str, counts: Counts) -> ByteRange:
        nothing = Counter[str]()
        more = [each.extra_bytes(host, nothing) for each in others]
        return _sum([first.extra_bytes(host, counts), *more])

    def retransmitted_bytes(
        more: Mapping[str, int], counters: Mapping[str, Mapping[str, Cells]]
    ) -> Mapping[str, ByteRange]:
        nothing: Mapping[str, Mapping[str, Cells]] = {switch: {} for switch in counters}
        none = dict.fromkeys(more, 0)
        ways = [each.retransmitted_bytes(none, nothing) for each in others]
        ways.insert(0, first.retransmitted_bytes(more, counters))
        names = dict.fromkeys(name for each in ways for name in each)
        return {name: _sum(each[name] for each in ways if name in each) for name in names}

    return Traffic(of_round, extra_bytes, retransmitted_bytes, first.decided_bytes)


def _sum(found: Iterable[ByteRange]) -> ByteRange:
    least = most = 0
    for each in found:
        least, most = least + each.least, most + each.most
    return ByteRange(least, most)
