"""Frames a switch lost inside, from its counters and the links', by hand-made numbers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from agglab.testbed import systems
from agglab.testbed.base.traffic_counters import DirectionStatistics
from agglab.testbed.judge.queue_losses import LostFrames, lost_inside
from agglab.testbed.scenario import resolve
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.systems.summing.plan import PlacedJob, plan
from agglab.topologies import rack, two_tier

SWITCHML = systems.find("switchml")
KINDS = tuple(SWITCHML.counters)


def way(direction: str, packets: int, dropped: int = 0, refused: int = 0) -> DirectionStatistics:
    """packets: put on the link; dropped: of them, on purpose; refused: by the sender's queue."""
    return DirectionStatistics("link", direction, packets, 0, packets, dropped, refused)


def measured(ways: list[DirectionStatistics], counters: dict[str, dict[str, int]]) -> Any:
    cells = {
        switch: {kind: {0: (counts.get(kind, 0), 0)} for kind in KINDS}
        for switch, counts in counters.items()
    }
    job = SimpleNamespace(restarts=0, failure=None, job=SimpleNamespace(number=1))
    return SimpleNamespace(
        outcome=SimpleNamespace(jobs=[job]),
        counters=cells,
        statistics=SimpleNamespace(directions=ways),
    )


def lost(topology: Any, value: Any) -> dict[str, LostFrames]:
    hosts = tuple(host.name for host in topology.hosts)
    resolved = resolve(Scenario())
    job = replace(resolved.jobs[0], hosts=hosts)
    return lost_inside(replace(resolved, graph=topology, jobs=(job,)), value)


def trees(topology: Any, hosts: tuple[str, ...]) -> Any:
    return plan(topology, [PlacedJob(1, hosts, 0, 8)]).trees


def test_a_rack() -> None:
    """100 chunks of two workers: 3 frames lost on purpose, 4 before the program, 5 after it."""
    counters = {"s1": {"new": 193, "duplicate": 2, "complete": 93, "repeated": 2}}
    ways = [way("h1->s1", 100, 3), way("h2->s1", 102), way("s1->h1", 90, 0, 2), way("s1->h2", 91)]
    found = lost(rack(2), measured(ways, counters))
    assert found == {"s1": LostFrames(before=4, after=2 * 93 + 2 - 90 - 2 - 91)}


@pytest.mark.parametrize(
    ("injected", "counted"),
    [({"lost_link_down": 7}, 93), ({"corrupted": 7}, 93), ({"duplicated": 7}, 107)],
)
def test_what_impairments_took_or_made_is_no_loss_of_the_switch(
    injected: dict[str, int], counted: int
) -> None:
    ways = [replace(way("h1->s1", 100), **injected)]
    for gone in (0, 2):
        value = measured(ways, {"s1": {"duplicate": counted - gone}})
        assert lost(rack(1), value) == {"s1": LostFrames(before=gone, after=0)}


def test_what_is_counted_or_sent_too_often_is_no_loss() -> None:
    ways = [way("h1->s1", 100), way("s1->h1", 100)]
    value = measured(ways, {"s1": {"duplicate": 103, "repeated": 98}})
    assert lost(rack(1), value) == {"s1": LostFrames(before=0, after=0)}


def test_a_tree() -> None:
    """A leaf sends what it completes up once, and the final sum down to each child."""
    topology = two_tier(2, 2)
    forest = trees(topology, tuple(host.name for host in topology.hosts))
    (leaf,) = {s for s, b in forest[1].branches.items() if "h1" in [n for _, n in b.children]}
    (root,) = {s for s, b in forest[1].branches.items() if b.parent is None}
    counters = {leaf: {"new": 40, "complete": 20, "final_new": 19, "partial_repeated": 1}}
    ways = [
        *(way(f"{host}->{leaf}", 20) for host in ("h1", "h2")),
        *(way(f"{leaf}->{host}", 19) for host in ("h1", "h2")),
        way(f"{root}->{leaf}", 20),
        way(f"{leaf}->{root}", 20),
    ]
    assert lost(topology, measured(ways, counters)) == {leaf: LostFrames(before=1, after=1)}


@pytest.mark.parametrize(("restarts", "failure"), [(1, None), (0, "a failure")])
def test_nobody_can_tell_after_a_broken_session(restarts: int, failure: Any) -> None:
    value = measured([], {"s1": {}})
    value.outcome.jobs[0].restarts, value.outcome.jobs[0].failure = restarts, failure
    assert lost(rack(2), value) == {}


def test_a_program_that_counts_otherwise_tells_nothing() -> None:
    value = measured([way("h1->s1", 5)], {"s1": {}})
    del value.counters["s1"]["final_new"]
    assert lost(rack(2), value) == {}
