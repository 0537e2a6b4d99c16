"""p4/switchml.p4 in trees of switches: partial sums up, final sums down, whatever goes wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from aggregation_model import INT32, OPENING, RESULT, Contribution
from frames import contribution
from rules.switchml import GROUP, JOB, LANES, Walker, packet, value
from trees import UPLINK, Tree, place_of, planted

from p4native.switch import Pipeline

SLOTS = 4


@pytest.fixture
def tree(compiled: Callable[[int], Path]) -> Callable[[list], Tree]:
    def build(shape: list) -> Tree:
        load = lambda: Pipeline.load(compiled(LANES))  # noqa: E731
        return planted(load, shape, lambda node: place_of(node, JOB, 0, SLOTS, GROUP))

    return build


def walk(tree: Tree, seed: int, chunks: int, mishap: float) -> None:
    count = len(tree.places)
    workers = [Walker(rank, count, SLOTS, chunks) for rank in range(count)]
    tree.run(workers, random.Random(seed), mishap)


SHAPES = [[3], [[2], [2]], [1, [2]], [[1, [2]], [[1], [1]]], [[1]]]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_without_mishap_each_uplink_carries_a_chunk_once(
    tree: Callable[[list], Tree], shape: list
) -> None:
    grown = tree(shape)
    walk(grown, 1, chunks=9, mishap=0.0)
    assert grown.up == (len(grown.nodes) - 1) * 9 * SLOTS


@pytest.mark.long(but=["[3]-0", "[[1, [2]], [[1], [1]]]-4", "[[2], [2]]-5", "[3]-5"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_loss_duplication_and_any_order_leave_sums_exact(
    tree: Callable[[list], Tree], shape: list, seed: int
) -> None:
    walk(tree(shape), seed, chunks=20, mishap=0.15)


def test_a_final_sum_nobody_asked_for_is_dropped(tree: Callable[[list], Tree]) -> None:
    """From the parent's port, but before this switch's own part is complete, or of another kind."""
    rack = tree([[2]]).nodes[1]
    forged = Contribution(JOB, 0, 1, INT32 | RESULT, 0, value(0, 0, 1))
    assert rack.pipeline.process(UPLINK, contribution(9, forged)) == []
    rack.pipeline.process(1, contribution(1, packet(0, 0, 1)))
    assert rack.pipeline.process(UPLINK, contribution(9, forged)) == []
    [(port, _)] = rack.pipeline.process(2, contribution(2, packet(1, 0, 1)))
    assert port == UPLINK
    other = Contribution(JOB, 0, 1, OPENING | RESULT, 0, shapes=(1, 1))
    assert rack.pipeline.process(UPLINK, contribution(9, other)) == []
    upward = Contribution(JOB, 0, 1, INT32, 0, value(0, 0, 1))
    assert rack.pipeline.process(UPLINK, contribution(9, upward)) == []
    counters = "SwitchmlIngress.aggregation."
    assert rack.pipeline.counters.read(counters + "final_unneeded", 0)[0] == 3
    assert rack.pipeline.counters.read(counters + "contribution_refused", 0)[0] == 1
    assert len(rack.pipeline.process(UPLINK, contribution(9, forged))) == 2


def test_a_child_cannot_conclude(tree: Callable[[list], Tree]) -> None:
    rack = tree([[2]]).nodes[1]
    for rank in (0, 1):
        rack.pipeline.process(rank + 1, contribution(rank + 1, packet(rank, 0, 1)))
    forged = Contribution(JOB, 0, 1, INT32 | RESULT, 0, value(0, 0, 1))
    assert rack.pipeline.process(1, contribution(1, forged)) == []
    assert (
        rack.pipeline.counters.read("SwitchmlIngress.aggregation.contribution_refused", 0)[0] == 1
    )


def test_the_first_child_alone_makes_a_switch_ask_again(tree: Callable[[list], Tree]) -> None:
    rack = tree([[3]]).nodes[1]
    frames = [contribution(rank + 1, packet(rank, 0, 1)) for rank in range(3)]
    [partial] = [out for port in (1, 2, 3) for out in rack.pipeline.process(port, frames[port - 1])]
    assert partial[0] == UPLINK
    assert rack.pipeline.process(2, frames[1]) == rack.pipeline.process(3, frames[2]) == []
    assert rack.pipeline.process(1, frames[0]) == [partial]
    counters = "SwitchmlIngress.aggregation."
    assert rack.pipeline.counters.read(counters + "partial_repeated", 0)[0] == 1
    assert rack.pipeline.counters.read(counters + "contribution_duplicate", 0)[0] == 3
    final = Contribution(JOB, 0, 1, INT32 | RESULT, 0, value(0, 0, 1))
    assert len(rack.pipeline.process(UPLINK, contribution(9, final))) == 3
    assert [port for port, _ in rack.pipeline.process(3, frames[2])] == [3]


def test_a_final_sum_is_handed_down_once(tree: Callable[[list], Tree]) -> None:
    rack = tree([[2]]).nodes[1]
    for rank in (0, 1):
        rack.pipeline.process(rank + 1, contribution(rank + 1, packet(rank, 0, 1)))
    final = contribution(9, Contribution(JOB, 0, 1, INT32 | RESULT, 0, value(0, 0, 1)))
    assert len(rack.pipeline.process(UPLINK, final)) == 2
    assert rack.pipeline.process(UPLINK, final) == []
    counters = "SwitchmlIngress.aggregation."
    assert rack.pipeline.counters.read(counters + "final_new", 0)[0] == 1
    assert rack.pipeline.counters.read(counters + "final_unneeded", 0)[0] == 1
