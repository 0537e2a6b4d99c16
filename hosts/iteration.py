"""Rounds in which a worker makes several all-reduces, one after the other: which all-reduce begins
when.

With the workload `layers` (workloads/layers.py), a round is one iteration of a training: the
gradients are cut into buckets, and the sum of each bucket is one all-reduce. With the workload
`sgd`, a round is a whole training, and each step has one all-reduce (training_steps.py).
IteratedEndpoint wraps a system's endpoint (hosts/endpoint.py). IteratedReducer wraps the reducer of
a system that does not send its packets through such an endpoint.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.all_reduce import Reducer
from agglab.hosts.endpoint import NEVER_NS, Address, Endpoint, Inbox, Outbox, Repeat
from agglab.hosts.errors import NotFinite, RoundTimeout
from agglab.hosts.part import WORKER, Hooks, Part
from agglab.hosts.recovery import Recovery
from agglab.hosts.training_steps import TrainingSteps
from agglab.hosts.workloads import Iterated, Layers, Sgd
from agglab.hosts.workloads.layers import Bucket

LOOK_S = 0.02
PROGRESS_S = 0.2
NO_ROWS: NDArray[np.uint32] = np.zeros(0, np.uint32)


def endpoint_of(system: ModuleType, part: Part) -> Endpoint:
    """Returns the endpoint of a system. If a round of the workload has several all-reduces, the
    endpoint makes them one after the other."""
    inner: Endpoint = system.endpoint(summing(part))
    work = part.work
    if isinstance(work, Iterated) and part.role == WORKER:
        return IteratedEndpoint(inner, work, part.workers)
    return inner


def summing(part: Part) -> Part:
    """Returns the Part that is passed to the system's own endpoint or reducer. In this Part,
    several all-reduces of a round are replaced by a single one of the values of all buckets."""
    return replace(part, work=part.work.as_dense()) if isinstance(part.work, Iterated) else part


def reducer_of(system: ModuleType, part: Part, hooks: Hooks) -> Any:
    """Returns the object that performs the rounds of an agent. This is the system's own reducer
    (see all_reduce.Reducer), which may use the user's worker class, or else a Reducer around the
    system's endpoint."""
    made, work = getattr(system, "reducer", None), part.work
    if isinstance(work, Iterated) and part.role == WORKER and not hasattr(system, "endpoint"):
        assert made, "a system has endpoints or reducers"
        return IteratedReducer(made(summing(part), hooks), work, part.workers, hooks)
    if made and not isinstance(work, Iterated):
        return made(part, hooks)
    return Reducer(endpoint_of(system, part), part.bind, hooks)


class ReductionSchedule(Protocol):
    """The interface of the order and the times of a round's all-reduces. Times may be of any
    monotonic clock."""

    @property
    def next(self) -> Bucket | None:
        """The bucket that is to be summed next or is being summed now. None if all buckets are
        summed."""

    @property
    def due_ns(self) -> int:
        """The time at which the all-reduce of the next bucket may begin. When all buckets are
        summed, it is the time at which the round ends."""

    def values(self, bucket: Bucket) -> NDArray:
        """Returns the worker's values of the next bucket. It is called when the all-reduce of this
        bucket begins."""

    def summed(self, now_ns: int) -> None:
        """Notes that the sum of bucket `next` is complete. The bucket after it then becomes
        `next`."""

    @property
    def elements_left(self) -> list[int]:
        """The sizes, in elements, of the buckets that are not summed yet, the next one first."""


def schedule_of(
    work: Iterated, workers: int, now_ns: int, values: NDArray, out: NDArray
) -> ReductionSchedule:
    """Returns the schedule of a round that begins now. values, out: the arrays that Endpoint.begin
    was given."""
    if isinstance(work, Sgd):
        return TrainingSteps(work, workers, now_ns, values, out)
    return Iteration(work, now_ns, values)


class Iteration:
    """The ReductionSchedule of one iteration of the workload `layers`. values: the gradients of all
    layers."""

    def __init__(self, work: Layers, now_ns: int, values: NDArray) -> None:
        self._work, self._began_ns, self._values = work, now_ns, values
        self._left = deque(work.order)
        self._summed_ns: list[float] = [0.0] * len(work.buckets)

    @property
    def next(self) -> Bucket | None:
        """See ReductionSchedule."""
        return self._work.buckets[self._left[0]] if self._left else None

    @property
    def due_ns(self) -> int:
        """See ReductionSchedule. The round ends when the forward pass ends."""
        if bucket := self.next:
            return self._began_ns + bucket.ready_ns
        return self._began_ns + round(self._work.forward_end_ns(self._summed_ns))

    def values(self, bucket: Bucket) -> NDArray:
        """See ReductionSchedule."""
        return _cut(self._values, bucket)

    def summed(self, now_ns: int) -> None:
        """See ReductionSchedule."""
        self._summed_ns[self._left.popleft()] = now_ns - self._began_ns

    @property
    def elements_left(self) -> list[int]:
        """See ReductionSchedule."""
        return [self._work.buckets[number].elements for number in self._left]


class ChunkCount:
    """An estimate of the number of chunks of a whole round."""

    def __init__(self) -> None:
        self.before = 0

    def of(self, chunks: int, left: Sequence[int]) -> int:
        """Returns an estimate of the number of chunks of the round. chunks: the number of chunks of
        the current bucket. left: the number of values in the current bucket and in each later one.
        The chunks of the later buckets are estimated from these numbers."""
        if not left:
            return self.before
        return self.before + chunks + sum(-(-n * chunks // left[0]) for n in left[1:])


class IteratedEndpoint:
    """An Endpoint (hosts/endpoint.py) that makes all all-reduces of a round. It passes the buckets
    to another endpoint, the inner one, for which each bucket is a round of its own."""

    def __init__(self, inner: Endpoint, work: Iterated, workers: int) -> None:
        self._inner, self._work, self._workers = inner, work, workers
        self._schedule: ReductionSchedule | None = None
        self._count = ChunkCount()
        self._under_way = False
        self._not_finite: NotFinite | None = None
        self._presence: list[NDArray[np.uint64]] = []
        self.done = True
        self.deadline_ns = NEVER_NS

    @property
    def peers(self) -> Sequence[Address]:
        """The peers of the inner endpoint. The other properties about packets are passed on from
        the inner endpoint in the same way."""
        return self._inner.peers

    @property
    def outbox(self) -> Outbox:
        return self._inner.outbox

    @property
    def longest_bytes(self) -> int:
        return self._inner.longest_bytes

    @property
    def listens(self) -> bool:
        return self._inner.listens

    @property
    def in_flight(self) -> int:
        return self._inner.in_flight

    @property
    def counters(self) -> Mapping[str, int]:
        return self._inner.counters

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The `Recovery` objects of the inner endpoint, from which hosts/recording.py reads round
        trips and latencies."""
        found: Sequence[Recovery] = getattr(self._inner, "recoveries", ())
        return found

    def repeats(self, row: int) -> Repeat | None:
        return self._inner.repeats(row)

    def waiting(self, most: int) -> list[list[int]]:
        """Returns what the inner endpoint waits for in the current bucket. Chunks are numbered from
        the first chunk of this bucket."""
        return self._inner.waiting(most)

    @property
    def chunks(self) -> int:
        """The number of chunks of all buckets of the round. The part of the buckets that have not
        begun is an estimate."""
        left = self._schedule.elements_left if self._schedule else []
        return self._count.of(self._inner.chunks, left)

    @property
    def chunks_done(self) -> int:
        return self._count.before + (self._inner.chunks_done if self._under_way else 0)

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None
    ) -> None:
        """Begins a round. The arrays hold the values of all buckets."""
        assert self.done, "a round is under way"
        self._out, self._sums, self._count = out, sums, ChunkCount()
        self._schedule = schedule_of(self._work, self._workers, now_ns, values, out)
        self._not_finite, self.done = None, False
        self._presence = []

    @property
    def presence(self) -> NDArray[np.uint64] | None:
        """The inner endpoint's `presence` (worker.py) of all buckets, in the order in which they
        were summed; None if it has none."""
        if getattr(self._inner, "presence", None) is None:
            return None
        return np.concatenate([np.zeros(0, np.uint64), *self._presence])

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        return self._inner.on_datagrams(now_ns, inbox)

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Does what Endpoint.poll describes. Also begins the next bucket when it is due, and ends
        the round."""
        if not self.done:
            self._go_on(now_ns)
        rows, inner_ns = NO_ROWS, NEVER_NS
        if self._under_way or self._inner.listens:
            rows, inner_ns = self._poll_inner(now_ns), self._inner.deadline_ns
        if self._under_way and self._inner.done:  # these were the last rows of the bucket
            self.deadline_ns = now_ns
        elif self._under_way or self.done:
            self.deadline_ns = inner_ns
        else:
            assert self._schedule is not None, "a round is under way"
            self.deadline_ns = min(inner_ns, self._schedule.due_ns)
        return rows

    def _poll_inner(self, now_ns: int) -> NDArray[np.uint32]:
        try:
            return self._inner.poll(now_ns)
        except RoundTimeout as error:
            before = self._count.before
            missing = error.missing and [(a + before, b + before) for a, b in error.missing]
            of = len(self._work.buckets)
            left = len(self._schedule.elements_left) if self._schedule else 0
            which = f"bucket {of - left + 1} of {of}"
            raise RoundTimeout(f"{which}: {error}", missing) from None

    def _go_on(self, now_ns: int) -> None:
        schedule = self._schedule
        assert schedule is not None, "a round has begun"
        while True:
            if self._under_way and self._inner.done:
                self._end_bucket(schedule, now_ns)
            if self._under_way or now_ns < schedule.due_ns:
                return
            bucket = schedule.next
            if bucket is None:
                self.done = True
                return
            own_sums = None if self._sums is None else _cut(self._sums, bucket)
            self._inner.begin(now_ns, schedule.values(bucket), _cut(self._out, bucket), own_sums)
            self._under_way = True

    def _end_bucket(self, schedule: ReductionSchedule, now_ns: int) -> None:
        self._under_way = False
        self._count.before += self._inner.chunks
        schedule.summed(now_ns)
        if (presence := getattr(self._inner, "presence", None)) is not None:
            self._presence.append(presence)
        try:
            self._inner.finish()
        except NotFinite as error:
            self._not_finite = self._not_finite or error

    def finish(self) -> None:
        """Raises NotFinite if the sum of a bucket was not finite. If there are several such
        buckets, it raises the error of the first."""
        assert self.done
        if self._not_finite:
            raise self._not_finite


def _cut(array: NDArray, bucket: Bucket) -> NDArray:
    return array[bucket.start : bucket.start + bucket.elements]


class Blocking(Protocol):
    """The interface of a system's own reducer (see all_reduce.Reducer) whose `run` returns only
    when the sum is complete."""

    @property
    def endpoint(self) -> Any: ...

    @property
    def stats(self) -> dict[str, int]: ...

    def run(self, values: NDArray, total: NDArray, sums: NDArray[np.int32] | None) -> None: ...

    def serve(self, interrupt: int) -> None: ...

    def close(self) -> None: ...


class IteratedReducer:
    """A reducer (see all_reduce.Reducer) that makes all all-reduces of a round, one after the
    other. It uses an inner reducer whose `run` returns when the sum is complete. The time of the
    computed passes goes on while `run` is busy."""

    def __init__(self, inner: Blocking, work: Iterated, workers: int, hooks: Hooks) -> None:
        self._inner, self._work, self._workers, self._hooks = inner, work, workers, hooks
        self.endpoint = IteratedWatch(inner.endpoint)
        self.serve, self.close = inner.serve, inner.close

    @property
    def stats(self) -> dict[str, int]:
        """The counts of the inner reducer since the session was opened."""
        return self._inner.stats

    def all_reduce(self, array: NDArray, out: NDArray, sums: NDArray | None = None) -> NDArray:
        """Performs one round with these arrays, as `all_reduce` of all_reduce.Reducer does. The
        arrays must be flat and contiguous."""
        self.run(array, out, sums)
        return out

    def run(self, values: NDArray, total: NDArray, sums: NDArray | None) -> None:
        """Performs one round. Raises the exceptions of the inner reducer, but NotFinite only when
        the round is over."""
        now_ns, not_finite = time.monotonic_ns(), None
        schedule = schedule_of(self._work, self._workers, now_ns, values, total)
        self.endpoint.begin(schedule)
        while bucket := schedule.next:
            self._wait_until(schedule.due_ns)
            self.endpoint.under_way = True
            own_sums = None if sums is None else _cut(sums, bucket)
            try:
                self._inner.run(schedule.values(bucket), _cut(total, bucket), own_sums)
            except NotFinite as error:
                not_finite = not_finite or error
            self.endpoint.summed()
            schedule.summed(time.monotonic_ns())
        self._wait_until(schedule.due_ns)
        if not_finite:
            raise not_finite

    def _wait_until(self, due_ns: int) -> None:
        """Waits until `due_ns`, as if a pass were computed until then. Carries out the testbed's
        commands while it waits."""
        told_ns = time.monotonic_ns()
        while (now_ns := time.monotonic_ns()) < due_ns:
            time.sleep(min(LOOK_S, (due_ns - now_ns) / 1e9))
            if self._hooks.on_batch:
                self._hooks.on_batch()
            if self._hooks.on_progress and now_ns - told_ns >= PROGRESS_S * 1e9:
                told_ns = now_ns
                self._hooks.on_progress(now_ns)


class IteratedWatch:
    """The endpoint of an IteratedReducer as its agent sees it. It numbers the chunks of all buckets
    consecutively."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._count = ChunkCount()
        self._schedule: ReductionSchedule | None = None
        self.under_way = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def begin(self, schedule: ReductionSchedule) -> None:
        """Notes that another round begins. schedule: the ReductionSchedule of this round."""
        self._schedule, self._count, self.under_way = schedule, ChunkCount(), False

    def summed(self) -> None:
        """Notes that the sum of the current bucket is complete. Must be called before the schedule
        moves to the next bucket."""
        self._count.before += self._inner.chunks
        self.under_way = False

    @property
    def chunks(self) -> int:
        left = self._schedule.elements_left if self._schedule else []
        return self._count.of(self._inner.chunks, left)

    @property
    def chunks_done(self) -> int:
        return self._count.before + (self._inner.chunks_done if self.under_way else 0)
