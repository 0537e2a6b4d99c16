"""The default first timeout and window cover what the links' delays add to round trips."""

from __future__ import annotations

from pathlib import Path

import pytest
from system_runs import run_in

from agglab.testbed import systems
from agglab.testbed.scenario import load
from agglab.testbed.schema.system_names import built_in
from agglab.testbed.systems.base import ResolvedScenario

SYSTEMS = [
    name
    for name in built_in()
    if "workload.first_timeout" in systems.find(name).abilities.keys
    and "virtual" in systems.find(name).abilities.clocks
]
FAST = """
name: tried
backend: virtual
system: {system}
topology: {{kind: two_tier, racks: 2, workers: 2, servers: 1}}
links: {{rate: 10gbit, delay: 6ms}}
workload: {{kind: {kind}, elements: 1_000, rounds: 1}}
"""
RACK = "backend: virtual\nsystem: {system}\ntopology: {{kind: rack, workers: {workers}}}\n"


def resolved(folder: Path, text: str) -> ResolvedScenario:
    path = folder / "tried.yaml"
    path.write_text(text)
    return load(path).points[0].resolved


@pytest.mark.long(but=["atp"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_nothing_is_sent_again_because_of_delays(system: str, tmp_path: Path) -> None:
    """Between racks, a round trip is eight times 6 ms, while 20 windows take less than 20 ms."""
    can = systems.find(system).abilities.workloads
    kind = "allreduce" if "allreduce" in can else "push_pull"
    _, metrics = run_in(tmp_path)(FAST.format(system=system, kind=kind))
    assert metrics["exact"] and metrics["totals"]["retransmitted"] == 0
    assert "sent-again" not in {finding["kind"] for finding in metrics["findings"]}


def test_the_usual_window_fills_links_with_long_delays(tmp_path: Path) -> None:
    text = RACK.format(system="ring", workers=4) + (
        "links: {rate: 100mbit, delay: 6ms}\nworkload: {elements: 100_000, rounds: 1}\n"
    )
    code, metrics = run_in(tmp_path)("name: tried\n" + text)
    assert (code, metrics["findings"]) == (0, [])


@pytest.mark.parametrize(
    ("delays", "workers", "delays_s"),
    [
        ("links: {delay: 0s}", 3, 0.0),
        ("links: {delay: 1ms}", 3, 0.004),
        ("links: {delay: 1ms}", 1, 0.002),
        ("links: {delay: 1ms, overrides: [{match: h2-*, delay: 5ms}]}", 3, 0.012),
        ("links: {overrides: [{match: 'h[23]-*', delay: 5ms}]}", 3, 0.020),
        ("faults: [{kind: jitter, link: h1-*, jitter: 3ms}]", 2, 0.006),
        ("faults: [{kind: jitter, link: h1-*, jitter: 3ms, at: 1ms, for: 1ms}]", 2, 0.0),
    ],
)
def test_the_longest_round_trip_of_delays_is_known_to_agents(
    delays: str, workers: int, delays_s: float, tmp_path: Path
) -> None:
    given = resolved(tmp_path, RACK.format(system="switchml", workers=workers) + delays)
    assert given.jobs[0].delays_s == pytest.approx(delays_s)
    job = given.whole(given.jobs[0], 0)
    told = {agent.configuration["delays_s"] for agent in given.system.agents(given, job)}
    assert told == {given.jobs[0].delays_s}


@pytest.mark.parametrize("system", ["ring", "ps", "atp"])
def test_short_delays_leave_the_usual_window_as_it_is(system: str, tmp_path: Path) -> None:
    rack = RACK.format(system=system, workers=4).replace("rack, ", "rack, servers: 1, ")
    windows = [
        resolved(tmp_path, f"{rack}\nlinks: {{delay: {delay}}}").window
        for delay in ("0s", "1250us", "6ms")
    ]
    assert windows[0] == windows[1] < windows[2]
