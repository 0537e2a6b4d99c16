"""Iterations of `layers` at a worker: what is a bucket, in which order buckets are summed, and when
passes are through; around endpoints and reducers that say what they were asked."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from agglab.hosts.endpoint import Inbox
from agglab.hosts.errors import NotFinite, RoundTimeout
from agglab.hosts.iteration import (
    IteratedEndpoint,
    IteratedReducer,
    endpoint_of,
    reducer_of,
)
from agglab.hosts.part import NO_HOOKS, SERVER, WORKER, Hooks, Part
from agglab.hosts.workloads import InputKey, Layers, description, read

MS = 1_000_000
NEVER = 2**63 - 1
LAYERS = Layers(
    dtype="float32",
    sizes=(10, 40, 5, 5),
    forward_ns=(1 * MS, 2 * MS, 3 * MS, 4 * MS),
    backward_ns=(2 * MS, 4 * MS, 6 * MS, 8 * MS),
    sparse=(1,),
    density=0.5,
    block=4,
    overlap="random",
    workers=2,
    bucket=12,
    priorities=False,
    link_bps=32_000,  # a value a millisecond
)
FIRST = replace(LAYERS, priorities=True)


def drawn(seed: int) -> Layers:
    chance = random.Random(seed)
    count = chance.randint(1, 9)
    passes = ([chance.randint(0, 9 * MS) for _ in range(count)] for _ in range(2))
    return replace(
        LAYERS,
        sizes=[chance.randint(1, 50) for _ in range(count)],
        forward_ns=next(passes),
        backward_ns=next(passes),
        sparse=[n for n in range(count) if chance.random() < 0.3],
        bucket=chance.randint(1, 60),
        priorities=chance.random() < 0.5,
    )


def test_buckets_by_hand():
    """Layers of 10, 40, 5 and 5 values, 12 in a bucket."""
    parts = [(each.start, each.elements, each.first, each.last) for each in LAYERS.buckets]
    assert parts == [(50, 10, 2, 3), (10, 40, 1, 1), (0, 10, 0, 0)]
    assert [each.ready_ns for each in LAYERS.buckets] == [14 * MS, 18 * MS, 20 * MS]
    cut = [(each.start, each.elements) for each in FIRST.buckets]
    assert cut == [(50, 10), (10, 12), (22, 12), (34, 12), (46, 4), (0, 10)]


@pytest.mark.parametrize("seed", range(40))
def test_each_value_is_in_one_bucket_and_each_bucket_is_summed_once(seed):
    work = drawn(seed)
    owners = np.zeros(work.elements, int)
    for bucket in work.buckets:
        owners[bucket.start : bucket.start + bucket.elements] += 1
        assert bucket.elements <= work.bucket or bucket.first == bucket.last
        assert bucket.elements <= work.bucket or not work.priorities
        assert bucket.ready_ns == sum(work.backward_ns[bucket.first :])
    assert (owners == 1).all()
    assert sorted(work.order) == list(range(len(work.buckets)))
    assert [e.ready_ns for e in work.buckets] == sorted(e.ready_ns for e in work.buckets)


def test_order_by_hand():
    """The first bucket, ready at 14 ms, takes 10 ms: then all are ready, the input's comes first,
    and the pieces of the large layer in the order in which the forward pass needs them."""
    assert LAYERS.order == (0, 1, 2)
    assert FIRST.order == (0, 5, 1, 2, 3, 4)


def test_an_iteration_by_hand():
    """Sums of 10, 40 and 10 ms end at 24, 64 and 74; passes of 1, 2, 3 and 4 ms follow the last."""
    assert LAYERS.computing_ns == 30 * MS
    assert LAYERS.iteration_ns([10 * MS, 40 * MS, 10 * MS]) == (74 + 10) * MS
    assert LAYERS.iteration_ns([0, 0, 0]) == 30 * MS
    # 10 | 10 | 12, 12, 12, 4: the input's is there at 34, the large layer's last at 74.
    assert FIRST.iteration_ns([10 * MS, 12 * MS, 12 * MS, 12 * MS, 4 * MS, 10 * MS]) == 83 * MS


def test_an_iteration_waits_only_for_what_the_next_layer_needs():
    """The last layers' sum at 100 ms holds up nothing before the third layer."""
    assert LAYERS.forward_end_ns([100 * MS, 0, 0]) == 107 * MS
    assert LAYERS.forward_end_ns([0, 0, 100 * MS]) == 110 * MS


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_of_a_tensor_are_those_of_its_buckets(seed):
    work, key = drawn(seed), InputKey(1, 2, 1, 3)
    whole = work.inputs(key)
    for bucket, own in zip(work.buckets, work.all_reduces(), strict=True):
        expected = whole[bucket.start : bucket.start + bucket.elements]
        assert own.inputs(key).tobytes() == expected.tobytes()
        half = bucket.elements // 2
        assert own.part(key, half, bucket.elements - half).tobytes() == expected[half:].tobytes()


def test_only_sparse_layers_have_blocks_of_zeros():
    """Half of the ten blocks of the second layer."""
    values = LAYERS.inputs(InputKey(1, 2, 0, 3))
    blocks = (values[10:50].reshape(10, 4) != 0).any(axis=1)
    assert blocks.sum() == 5
    assert (values[:10] != 0).all() and (values[50:] != 0).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sizes": [1, 2]}, "differ in length"),
        ({"sizes": [1, 2, 0, 3]}, "has no values"),
        ({"forward_ns": [1, 2, -1, 3]}, "forward_ns"),
        ({"sizes": "abcd"}, "sizes"),
        ({"bucket": 0}, "has no values"),
    ],
)
def test_what_are_no_layers_is_one_line(changed, message):
    given = {**json.loads(json.dumps(description(LAYERS))), **changed}
    with pytest.raises(ValueError, match=message) as caught:
        read(given)
    assert "\n" not in str(caught.value)


class Inner:
    """An endpoint that sums a bucket in `takes_ns`, and writes down what it was asked."""

    peers = (("10.0.0.1", 1),)
    outbox = None
    longest_bytes = 100
    in_flight = 0
    counters = {}  # noqa: RUF012

    def __init__(self, takes_ns=5 * MS, listens=False):
        self.takes_ns, self.listens = takes_ns, listens
        self.begun, self.polls, self.taken = [], [], 0
        self.done, self.deadline_ns, self.chunks, self.chunks_done = True, NEVER, 0, 0
        self.fails = {}

    def begin(self, now_ns, values, out, sums):
        assert self.done
        self.begun.append((now_ns // MS, values.size))
        assert sums is None or sums.size == values.size == out.size
        out[:] = len(self.begun)
        self.end_ns, self.done = now_ns + self.takes_ns, False
        self.chunks, self.chunks_done = -(-values.size // 4), 0

    def poll(self, now_ns):
        self.polls.append(now_ns)
        if error := self.fails.get(len(self.begun)):
            raise error
        if not self.done and now_ns >= self.end_ns:
            self.done, self.chunks_done = True, self.chunks
        self.deadline_ns = NEVER if self.done else self.end_ns
        return np.zeros(0, np.uint32)

    def on_datagrams(self, now_ns, inbox):
        self.taken += inbox.count
        return inbox.count

    def finish(self):
        if len(self.begun) in self.not_finite:
            raise NotFinite(f"bucket {len(self.begun)}")

    not_finite = ()


def iterated(endpoint, work, now_ns=0):
    """Drive an iteration by its deadlines alone; when it was over, and what was received."""
    values = np.ones(work.elements, np.float32)
    out, sums = np.zeros_like(values), np.zeros(work.elements, np.int32)
    endpoint.begin(now_ns, values, out, sums)
    while not endpoint.done:
        endpoint.poll(now_ns)
        assert endpoint.done or endpoint.deadline_ns < NEVER, "it would never be asked again"
        if not endpoint.done:
            now_ns = max(now_ns, endpoint.deadline_ns)
    return now_ns, out


@pytest.mark.parametrize("listens", [False, True])
def test_buckets_begin_when_they_are_ready_and_the_one_before_is_summed(listens):
    inner = Inner(takes_ns=5 * MS, listens=listens)
    endpoint = IteratedEndpoint(inner, LAYERS, 2)
    for start in (0, 1000 * MS):
        inner.begun.clear()
        end_ns, out = iterated(endpoint, LAYERS, start)
        # Ready at 14, 18 and 20 ms: summed at 19, 24 and 29, and forward passes of 10 ms.
        at = start // MS
        assert inner.begun == [(at + 14, 10), (at + 19, 40), (at + 24, 10)]
        assert end_ns == start + 39 * MS == start + LAYERS.iteration_ns([5 * MS] * 3)
        assert out.tolist() == [3.0] * 10 + [2.0] * 40 + [1.0] * 10
        assert endpoint.chunks == endpoint.chunks_done == 3 + 10 + 3


@pytest.mark.parametrize("seed", range(40))
def test_an_endpoint_needs_the_time_that_its_buckets_do(seed):
    work, inner = drawn(seed), Inner(takes_ns=random.Random(seed).randint(0, 9) * MS)
    end_ns, _ = iterated(IteratedEndpoint(inner, work, 2), work)
    assert end_ns == round(work.iteration_ns([inner.takes_ns] * len(work.buckets)))
    sizes = [work.buckets[number].elements for number in work.order]
    assert [size for _, size in inner.begun] == sizes


def test_an_endpoint_that_only_hears_in_rounds_is_not_asked_between_buckets():
    inner = Inner()
    endpoint = IteratedEndpoint(inner, LAYERS, 2)
    endpoint.begin(0, *(np.zeros(60, np.float32) for _ in range(2)), None)
    endpoint.poll(0)
    assert (inner.polls, endpoint.deadline_ns) == ([], 14 * MS)
    inbox = Inbox(4, 100)
    inbox.fill([b"late"])
    assert endpoint.on_datagrams(MS, inbox) == inner.taken == 1


def test_an_endpoint_that_listens_is_asked_between_buckets_and_rounds():
    inner = Inner(listens=True)
    endpoint = IteratedEndpoint(inner, LAYERS, 2)
    assert endpoint.listens
    endpoint.poll(7)
    endpoint.begin(10, *(np.zeros(60, np.float32) for _ in range(2)), None)
    endpoint.poll(11)
    assert (inner.polls, inner.begun) == ([7, 11], [])


def test_a_bucket_without_a_finite_sum_is_told_when_all_are_summed():
    inner = Inner()
    inner.not_finite = (2, 3)
    endpoint = IteratedEndpoint(inner, LAYERS, 2)
    iterated(endpoint, LAYERS)
    assert len(inner.begun) == 3
    with pytest.raises(NotFinite, match="bucket 2"):
        endpoint.finish()
    inner.not_finite, inner.begun = (), []
    iterated(endpoint, LAYERS)
    endpoint.finish()


def test_what_is_missing_counts_from_the_first_bucket():
    inner = Inner()
    inner.fails = {2: RoundTimeout("no result for chunks 1-2", [(1, 2)])}
    endpoint = IteratedEndpoint(inner, LAYERS, 2)
    with pytest.raises(RoundTimeout, match="bucket 2 of 3: no result") as caught:
        iterated(endpoint, LAYERS)
    assert caught.value.missing == [(4, 5)]  # the first bucket has 3 chunks


def part(role=WORKER, work=LAYERS):
    return Part(1, role, 0, 2, ("127.0.0.1", 0), None, work, 1.0, {})


def test_systems_are_told_of_values_and_not_of_layers():
    told_of = []

    def made(given: Part) -> Any:
        told_of.append(given.work)
        return Inner()

    system = SimpleNamespace(endpoint=made)
    assert isinstance(endpoint_of(system, part()), IteratedEndpoint)
    assert isinstance(endpoint_of(system, part(SERVER)), Inner)
    assert [(work.kind, work.elements) for work in told_of] == [("allreduce", 60)] * 2
    dense = LAYERS.as_dense()
    assert isinstance(endpoint_of(system, part(work=dense)), Inner) and told_of[-1] is dense


class Blocking:
    """A reducer with a transport of its own."""

    def __init__(self):
        self.begun, self.endpoint, self.stats = [], Inner(), {}
        self.serve, self.close = None, None
        self.not_finite = ()

    def run(self, values, total, sums):
        self.begun.append((time.monotonic_ns(), values.size))
        self.endpoint.begin(0, values, total, sums)
        self.endpoint.poll(NEVER)
        if len(self.begun) in self.not_finite:
            raise NotFinite(f"bucket {len(self.begun)}")


def test_a_reducer_of_ones_own_transport_sums_buckets_when_they_are_ready():
    inner, batches = Blocking(), []
    system = SimpleNamespace(reducer=lambda given, hooks: inner)
    reducer = reducer_of(system, part(), Hooks(on_batch=lambda: batches.append(1)))
    assert isinstance(reducer, IteratedReducer)
    values = np.zeros(60, np.float32)
    inner.not_finite = (1,)
    began_ns = time.monotonic_ns()
    with pytest.raises(NotFinite, match="bucket 1"):
        reducer.all_reduce(values, values, np.zeros(60, np.int32))
    ended_ns = time.monotonic_ns()
    assert [size for _, size in inner.begun] == [10, 40, 10]
    for (at_ns, _), bucket in zip(inner.begun, LAYERS.buckets, strict=True):
        assert at_ns - began_ns >= bucket.ready_ns
    assert ended_ns - began_ns >= LAYERS.computing_ns
    assert reducer.endpoint.chunks == reducer.endpoint.chunks_done == 16
    assert values.tolist() == [3.0] * 10 + [2.0] * 40 + [1.0] * 10
    assert batches


def test_a_system_with_both_sums_buckets_by_its_endpoint(monkeypatch):
    """As the reducer may be around an endpoint, and of a class of the user's own."""
    system = SimpleNamespace(endpoint=lambda given: Inner(), reducer=lambda given, hooks: "its own")
    assert reducer_of(system, part(work=LAYERS.as_dense()), NO_HOOKS) == "its own"
    monkeypatch.setattr("agglab.hosts.iteration.Reducer", lambda *given: given)
    endpoint, bind, hooks = reducer_of(system, part(), NO_HOOKS)
    assert isinstance(endpoint, IteratedEndpoint)
    assert (bind, hooks) == (("127.0.0.1", 0), NO_HOOKS)
