"""Which share of its rate the busiest link used, with rounds and links of unequal lengths."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed.base.token_bucket import burst_bytes
from agglab.testbed.judge.link_utilization import busiest_share
from agglab.testbed.run.outcome import JobResult, Outcome, Round, Span
from agglab.testbed.scenario import ResolvedScenario, load
from agglab.testbed.schema.faults import AtTime, Fault, RateChange

TEXT = """
name: shares
topology: {workers: 2}
links: {rate: 10mbit}
jobs: [{name: a, workers: [h1, h2]}, {name: b, workers: [h1, h2]}]
"""
BYTES_PER_S = 1_250_000
S = 1_000_000_000


@pytest.fixture
def scenario(tmp_path: Path) -> ResolvedScenario:
    path = tmp_path / "shares.yaml"
    path.write_text(TEXT)
    return load(path).points[0].resolved


def outcome(
    scenario: ResolvedScenario, *rounds_s: list[tuple[int, int]], carried: dict[str, int]
) -> Outcome:
    """The rounds of each job, in seconds, and what links carried in all of them."""
    jobs = [
        JobResult(
            job,
            [
                Round(n, (0,), {0: {"start_ns": begin * S, "end_ns": end * S}}, begin * S, 1)
                for n, (begin, end) in enumerate(spans_s)
            ],
        )
        for job, spans_s in zip(scenario.jobs, rounds_s, strict=True)
    ]
    every_way = [way for link in scenario.graph.links for way, _, _, _ in link.directions()]
    return Outcome(jobs, spans=[Span(0, 9 * S, dict.fromkeys(every_way, 0) | carried)])


def test_a_round_within_another_jobs_round_takes_no_time_of_its_own(
    scenario: ResolvedScenario,
) -> None:
    carried = {"h1->s1": 2 * BYTES_PER_S}
    nested = outcome(scenario, [(0, 4)], [(1, 2)], carried=carried)
    frame_bytes = scenario.graph.links[0].frame_bytes
    expected = 2 * BYTES_PER_S / (4 * BYTES_PER_S + frame_bytes)
    assert busiest_share(scenario.graph, nested, token_bucket=False) == pytest.approx(expected)


@pytest.mark.parametrize("token_bucket", [False, True])
def test_each_period_may_begin_with_a_full_bucket(
    scenario: ResolvedScenario, token_bucket: bool
) -> None:
    apart = outcome(scenario, [(0, 1), (2, 3)], [(5, 6)], carried={"s1->h2": BYTES_PER_S})
    frame_bytes = scenario.graph.links[0].frame_bytes
    depth = burst_bytes(10_000_000, frame_bytes) if token_bucket else frame_bytes
    expected = BYTES_PER_S / (3 * BYTES_PER_S + 3 * depth)
    found = busiest_share(scenario.graph, apart, token_bucket)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("direction", "rate_bps"), [("h1->s1", 40e6), ("s1->h1", 10e6)])
def test_a_changed_rate_is_that_of_its_own_direction(
    scenario: ResolvedScenario, direction: str, rate_bps: float
) -> None:
    changed = outcome(scenario, [(0, 2)], [(0, 2)], carried={direction: BYTES_PER_S})
    faster = RateChange("h1-s1", ("h1->s1",), 40_000_000)
    changed.begun.append(Fault(0, "rate", faster, AtTime(1.0)))
    frame_bytes = scenario.graph.links[0].frame_bytes
    expected = BYTES_PER_S / (2 * rate_bps / 8 + frame_bytes)
    assert busiest_share(scenario.graph, changed, token_bucket=False) == pytest.approx(expected)
