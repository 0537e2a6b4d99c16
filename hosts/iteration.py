"""One iteration of `layers` (workloads/layers.py) at a worker: which bucket is summed when, around
whatever sums one. A state machine without sockets or clocks, an endpoint around a system's endpoint
(hosts/endpoint.py), and a reducer around the reducer of a system that has a transport of its own.
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
from agglab.hosts.endpoint import Address, Endpoint, Inbox, Outbox, Repeat
from agglab.hosts.errors import NotFinite, RoundTimeout
from agglab.hosts.part import WORKER, Hooks, Part
from agglab.hosts.recovery import Recovery
from agglab.hosts.workloads import Layers
from agglab.hosts.workloads.layers import Bucket

NEVER_NS = 2**63 - 1
LOOK_S = 0.02
PROGRESS_S = 0.2
NO_ROWS: NDArray[np.uint32] = np.zeros(0, np.uint32)


def endpoint_of(system: ModuleType, part: Part) -> Endpoint:
    """The endpoint of a system's module, which sums the buckets where the work has such."""
    inner: Endpoint = system.endpoint(summing(part))
    work = part.work
    if isinstance(work, Layers) and part.role == WORKER:
        return LayeredEndpoint(inner, work)
    return inner


def summing(part: Part) -> Part:
    """What a system is told that sums: of layers, their values."""
    return replace(part, work=part.work.as_dense()) if isinstance(part.work, Layers) else part


def reducer_of(system: ModuleType, part: Part, hooks: Hooks) -> Any:
    """A reducer of the system's own (all_reduce.Reducer), which may be the user's, or one around
    its endpoint."""
    made, work = getattr(system, "reducer", None), part.work
    if isinstance(work, Layers) and part.role == WORKER and not hasattr(system, "endpoint"):
        assert made, "a system has endpoints or reducers"
        return LayeredReducer(made(summing(part), hooks), work, hooks)
    if made and not isinstance(work, Layers):
        return made(part, hooks)
    return Reducer(endpoint_of(system, part), part.bind, hooks)


class Iteration:
    """Which bucket is to be summed next, and when. Times are of any monotonic clock."""

    def __init__(self, work: Layers, now_ns: int) -> None:
        self._work, self._began_ns = work, now_ns
        self._left = deque(work.order)
        self._summed_ns: list[float] = [0.0] * len(work.buckets)

    @property
    def next(self) -> Bucket | None:
        """None if all are summed, or under way."""
        return self._work.buckets[self._left[0]] if self._left else None

    @property
    def due_ns(self) -> int:
        """When the next bucket may begin; when all are summed, the end of the iteration."""
        if bucket := self.next:
            return self._began_ns + bucket.ready_ns
        return self._began_ns + round(self._work.forward_end_ns(self._summed_ns))

    def summed(self, now_ns: int) -> None:
        """The next bucket is."""
        self._summed_ns[self._left.popleft()] = now_ns - self._began_ns

    @property
    def elements_left(self) -> list[int]:
        """Of the buckets that are not summed, the next one first."""
        return [self._work.buckets[number].elements for number in self._left]


class ChunkCount:
    """Chunks of a whole iteration, from those of its buckets."""

    def __init__(self) -> None:
        self.before = 0

    def of(self, chunks: int, left: Sequence[int]) -> int:
        """All, where the bucket under way has `chunks`, and so many values are left in it and in
        those behind it; of the latter it is an estimate."""
        if not left:
            return self.before
        return self.before + chunks + sum(-(-n * chunks // left[0]) for n in left[1:])


class LayeredEndpoint:
    """See hosts.endpoint.Endpoint. A bucket is a round of the inner endpoint, one at a time."""

    def __init__(self, inner: Endpoint, work: Layers) -> None:
        self._inner, self._work = inner, work
        self._iteration = Iteration(work, 0)
        self._count = ChunkCount()
        self._under_way = False
        self._not_finite: NotFinite | None = None
        self.done = True
        self.deadline_ns = NEVER_NS

    @property
    def peers(self) -> Sequence[Address]:
        """The inner endpoint's, as is all that has to do with packets."""
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
        """What tells round trips and latencies (hosts/recording.py)."""
        found: Sequence[Recovery] = getattr(self._inner, "recoveries", ())
        return found

    def repeats(self, row: int) -> Repeat | None:
        return self._inner.repeats(row)

    def waiting(self, most: int) -> list[list[int]]:
        """What the bucket under way waits for; its chunks count from its own first."""
        return self._inner.waiting(most)

    @property
    def chunks(self) -> int:
        """Of all buckets; those that have not begun are estimated."""
        return self._count.of(self._inner.chunks, self._iteration.elements_left)

    @property
    def chunks_done(self) -> int:
        return self._count.before + (self._inner.chunks_done if self._under_way else 0)

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None
    ) -> None:
        """Begin the backward pass; the arrays have all layers."""
        assert self.done, "a round is under way"
        self._arrays = values, out, sums
        self._iteration, self._count = Iteration(self._work, now_ns), ChunkCount()
        self._not_finite, self.done = None, False

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        return self._inner.on_datagrams(now_ns, inbox)

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """See Endpoint.poll. Begins buckets, and ends the iteration."""
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
            self.deadline_ns = min(inner_ns, self._iteration.due_ns)
        return rows

    def _poll_inner(self, now_ns: int) -> NDArray[np.uint32]:
        try:
            return self._inner.poll(now_ns)
        except RoundTimeout as error:
            before = self._count.before
            missing = error.missing and [(a + before, b + before) for a, b in error.missing]
            of = len(self._work.buckets)
            which = f"bucket {of - len(self._iteration.elements_left) + 1} of {of}"
            raise RoundTimeout(f"{which}: {error}", missing) from None

    def _go_on(self, now_ns: int) -> None:
        while True:
            if self._under_way and self._inner.done:
                self._end_bucket(now_ns)
            if self._under_way or now_ns < self._iteration.due_ns:
                return
            bucket = self._iteration.next
            if bucket is None:
                self.done = True
                return
            values, out, sums = self._arrays
            own_sums = None if sums is None else _cut(sums, bucket)
            self._inner.begin(now_ns, _cut(values, bucket), _cut(out, bucket), own_sums)
            self._under_way = True

    def _end_bucket(self, now_ns: int) -> None:
        self._under_way = False
        self._count.before += self._inner.chunks
        self._iteration.summed(now_ns)
        try:
            self._inner.finish()
        except NotFinite as error:
            self._not_finite = self._not_finite or error

    def finish(self) -> None:
        """Raise NotFinite if the sum of a bucket was, the first of them."""
        assert self.done
        if self._not_finite:
            raise self._not_finite


def _cut(array: NDArray, bucket: Bucket) -> NDArray:
    return array[bucket.start : bucket.start + bucket.elements]


class Blocking(Protocol):
    """A reducer of a system that has a transport of its own (all_reduce.Reducer)."""

    @property
    def endpoint(self) -> Any: ...

    @property
    def stats(self) -> dict[str, int]: ...

    def run(self, values: NDArray, total: NDArray, sums: NDArray[np.int32] | None) -> None: ...

    def serve(self, interrupt: int) -> None: ...

    def close(self) -> None: ...


class LayeredReducer:
    """See all_reduce.Reducer: sums one bucket after the other by a reducer that returns when its
    sum is there. Passes take their time meanwhile."""

    def __init__(self, inner: Blocking, work: Layers, hooks: Hooks) -> None:
        self._inner, self._work, self._hooks = inner, work, hooks
        self.endpoint = LayeredWatch(inner.endpoint)
        self.serve, self.close = inner.serve, inner.close

    @property
    def stats(self) -> dict[str, int]:
        """Counts of the session."""
        return self._inner.stats

    def all_reduce(self, array: NDArray, out: NDArray, sums: NDArray | None = None) -> NDArray:
        """See all_reduce.Reducer, whose arrays are those of a workload: flat and contiguous."""
        self.run(array, out, sums)
        return out

    def run(self, values: NDArray, total: NDArray, sums: NDArray | None) -> None:
        """One iteration. Raises what the inner reducer raises; NotFinite when it is over."""
        iteration, not_finite = Iteration(self._work, time.monotonic_ns()), None
        self.endpoint.begin(iteration)
        while bucket := iteration.next:
            self._wait_until(iteration.due_ns)
            self.endpoint.under_way = True
            own_sums = None if sums is None else _cut(sums, bucket)
            try:
                self._inner.run(_cut(values, bucket), _cut(total, bucket), own_sums)
            except NotFinite as error:
                not_finite = not_finite or error
            self.endpoint.summed()
            iteration.summed(time.monotonic_ns())
        self._wait_until(iteration.due_ns)
        if not_finite:
            raise not_finite

    def _wait_until(self, due_ns: int) -> None:
        """The time of a pass. The testbed's commands are heard meanwhile."""
        told_ns = time.monotonic_ns()
        while (now_ns := time.monotonic_ns()) < due_ns:
            time.sleep(min(LOOK_S, (due_ns - now_ns) / 1e9))
            if self._hooks.on_batch:
                self._hooks.on_batch()
            if self._hooks.on_progress and now_ns - told_ns >= PROGRESS_S * 1e9:
                told_ns = now_ns
                self._hooks.on_progress(now_ns)


class LayeredWatch:
    """What an agent looks at of a reducer's endpoint, its chunks being those of all buckets."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._count = ChunkCount()
        self._iteration: Iteration | None = None
        self.under_way = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def begin(self, iteration: Iteration) -> None:
        """Another iteration."""
        self._iteration, self._count, self.under_way = iteration, ChunkCount(), False

    def summed(self) -> None:
        """The bucket under way is, and still the next of the iteration."""
        self._count.before += self._inner.chunks
        self.under_way = False

    @property
    def chunks(self) -> int:
        left = self._iteration.elements_left if self._iteration else []
        return self._count.of(self._inner.chunks, left)

    @property
    def chunks_done(self) -> int:
        return self._count.before + (self._inner.chunks_done if self.under_way else 0)
