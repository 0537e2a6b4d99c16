"""KVWorker and KVServer over loopback: a store of keys that several workers push to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

from agglab.systems.libra.kv import KVServer, KVWorker

FIRST_PORT = 47_100


@pytest.fixture
def cluster():
    """cluster(workers, servers, dtype) starts as many; returns the workers."""
    with ExitStack() as stack:

        def start(workers, servers, dtype, **more):
            theirs = [("127.0.0.1", FIRST_PORT + rank) for rank in range(workers)]
            serving = [("127.0.0.1", FIRST_PORT + 50 + index) for index in range(servers)]
            for index in range(servers):
                own = serving[index]
                stack.enter_context(KVServer(index, servers, theirs, own, dtype, **more))
            return [
                stack.enter_context(KVWorker(rank, workers, serving, theirs[rank], dtype))
                for rank in range(workers)
            ]

        yield start


def at_once(calls):
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_what_is_pushed_adds_up_and_is_pulled(cluster, dtype):
    a, b = cluster(2, 2, dtype)
    high = 2**63 + 5
    stamps = [a.push([1, 7, high], [1, 2, 3]), b.push([7, 9], [10, 20])]
    a.wait(stamps[0])
    b.wait(stamps[1])
    pulled = at_once([lambda: a.pull([1, 7, 9]), lambda: b.pull([7, 8, high])])
    assert [each.tolist() for each in pulled] == [[1, 12, 20], [12, 0, 3]]
    assert pulled[0].dtype == dtype
    both = at_once([lambda: a.push_pull([7], [100]), lambda: b.push_pull([7, 9], [1000, 1])])
    assert [each.tolist() for each in both] == [[1112], [1112, 21]]


def test_many_keys_in_many_packets_and_calls_in_their_order(cluster):
    workers = cluster(3, 2, "int32")
    chance = np.random.default_rng(1)
    keys = np.unique(chance.integers(0, 2**64 - 1, 5_000, np.uint64))
    for worker in workers:
        for number in range(3):
            worker.push(keys, np.full(keys.size, number, np.int32))
    for pulled in at_once([lambda at=at: at.pull(keys) for at in workers]):
        assert np.all(pulled == 3 * (0 + 1 + 2))


def test_keys_out_of_order_and_other_dtypes_are_refused(cluster):
    (worker,) = cluster(1, 1, "int32")
    with pytest.raises(ValueError, match="ascending"):
        worker.push_pull([2, 1], [1, 1])
    with pytest.raises(ValueError, match="float64"):
        KVWorker(0, 1, [("127.0.0.1", 1)], ("127.0.0.1", 2), "float64")
