"""Tests of endpoints that send to each other, for every system between hosts alike. The module of a
system's tests imports them, and has the fixtures `exchange`, which says how the system is asked,
and `servers`, which says how many servers it is asked with.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from flow_network import MS, NEVER, check_sums, tensors_of
from hypothesis import given, settings
from hypothesis import strategies as st
from mishaps import SLOW_NS, any_mishaps, refuse_all
from switch_model import Faults

from agglab.hosts.agreement import OPERATIONS, Agreement
from agglab.hosts.driver import default_window
from agglab.hosts.errors import NotFinite, ShapeMismatch

__all__ = [
    "test_a_result_that_is_not_finite_is_named_and_the_next_round_works",
    "test_a_window_fills_a_link_of_1_gbit_with_a_round_trip_of_1_ms",
    "test_all_workers_hear_of_another_operation_and_name_both",
    "test_malformed_and_forged_datagrams_change_nothing",
    "test_the_sum_is_exact_however_often_one_asks",
    "test_the_sum_is_exact_whatever_the_network_does",
]


@dataclass(frozen=True)
class Exchange:
    """How a system is asked.

    network(tensors, servers, lanes, window, faults, seed, **more): a FlowNetwork, its workers and
    its servers. expected(arrays): the sum of one array from each rank, bit for bit. counted(
    workers, servers, sizes, lanes): asserts what servers count of rounds of these sizes. frozen,
    forged: see mishaps.refuse_all. frame_bytes, predicted_bytes: those of the system. most_ns: how
    long a round may take on links of 1 Gbit/s that need bound_ns, with so many workers.
    """

    network: Callable
    expected: Callable
    frozen: Callable
    forged: Callable
    frame_bytes: Callable[[int], int]
    predicted_bytes: Callable[[int, int, int], int]
    most_ns: Callable[[float, int], float]
    counted: Callable = lambda *_: None


CASES = given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 8),
    sizes=st.lists(st.integers(0, 90), min_size=1, max_size=4),
    lanes=st.integers(1, 5),
    window=st.integers(1, 70),
    dtype=st.sampled_from(["int32", "float32"]),
    mishaps=any_mishaps,
    in_place=st.booleans(),
)


def sums_are_exact(exchange, seed, workers, sizes, lanes, window, dtype, mishaps, in_place):
    """With one to four servers, where the system has servers."""
    tensors, faults = tensors_of(seed, workers, sizes, dtype), mishaps.faults
    servers = random.Random(seed).randint(1, 4)
    network, nodes, others = exchange.network(
        tensors, servers, lanes, window, faults, seed, gather_ns=mishaps.gather_ns
    )
    mishaps.stagger(nodes)
    for node in nodes:
        node.in_place = in_place
    network.run(SLOW_NS)
    check_sums(nodes, exchange.expected)
    assert all(node.endpoint.counters["malformed"] == 0 for node in [*nodes, *others])
    exchange.counted(nodes, others, sizes, lanes)
    if mishaps.none:
        assert all(node.endpoint.counters["retransmitted"] == 0 for node in nodes)


@settings(max_examples=60)
@CASES
def test_the_sum_is_exact_whatever_the_network_does(exchange, **case):
    sums_are_exact(exchange, **case)


@pytest.mark.long
@settings(max_examples=300)
@CASES
def test_the_sum_is_exact_however_often_one_asks(exchange, **case):
    sums_are_exact(exchange, **case)


def test_a_window_fills_a_link_of_1_gbit_with_a_round_trip_of_1_ms(exchange):
    """As many servers as workers: every link carries the tensor once each way."""
    elements, lanes, workers = 400_000, 256, 4
    frame_bytes = exchange.frame_bytes(lanes)
    window = default_window(frame_bytes, 65535, 1e9)
    assert window > 1e-3 * 1e9 / 8 / frame_bytes
    tensors = tensors_of(2, workers, [elements], "float32")
    faults = Faults(delay_ns=MS // 2)
    network, nodes, _ = exchange.network(tensors, workers, lanes, window, faults, rate_bps=1e9)
    network.run()
    check_sums(nodes, exchange.expected)
    bound_ns = exchange.predicted_bytes(elements, workers, lanes) * 8
    assert bound_ns < network.now_ns < exchange.most_ns(bound_ns, workers)
    assert sum(node.endpoint.counters["retransmitted"] for node in nodes) == 0


@pytest.mark.parametrize("loss", [0, 0.3])
def test_all_workers_hear_of_another_operation_and_name_both(exchange, servers, loss):
    tensors = [[np.ones(8, np.int32)] for _ in range(3)]
    network, nodes, _ = exchange.network(tensors, servers, 2, 4, Faults(loss, delay_ns=MS), 3)
    nodes[1].endpoint.agreement = Agreement(OPERATIONS.index("AVG"))
    network.run()
    assert [type(node.error) for node in nodes] == [ShapeMismatch] * 3
    for node in nodes:
        assert "operation SUM" in str(node.error) and "operation AVG" in str(node.error)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_a_result_that_is_not_finite_is_named_and_the_next_round_works(exchange, value):
    tensors = tensors_of(8, 3, [20, 20], "float32")
    for mine in tensors:
        mine[0][13] = value
    network, nodes, _ = exchange.network([mine[:1] for mine in tensors], 1)
    network.run()
    for node, mine in zip(nodes, tensors, strict=True):
        with pytest.raises(NotFinite, match=r"index 13 of job 7 is (-?inf|nan)"):
            node.endpoint.finish()
        node.tensors.append(mine[1])
        node.deadline_ns = network.now_ns
    network.run()
    wanted = exchange.expected([mine[1] for mine in tensors]).tobytes()
    for node in nodes:
        node.endpoint.finish()
        assert node.results[1].tobytes() == wanted


@pytest.mark.parametrize("seed", range(30))
def test_malformed_and_forged_datagrams_change_nothing(exchange, seed):
    """In the middle of a round."""
    tensors = tensors_of(seed, 3, [90, 90], "int32")
    network, nodes, others = exchange.network(tensors, 2, 2, 8, Faults(0.1), seed)
    while nodes[0].endpoint.chunks_done <= seed:
        network.step(NEVER)
    refuse_all(network, [*nodes, *others], exchange.forged, exchange.frozen, seed)
    network.run()
    check_sums(nodes, exchange.expected)
