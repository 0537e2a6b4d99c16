"""The arithmetic of metrics.json, by cases computed by hand."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.metrics import Measurements, bounds, compute, failures, lookup, round_time_s
from testbed.network import DirectionStatistics, NetworkStatistics, SwitchStatistics
from testbed.scenario import Scenario, load
from testbed.scenario.expectations import Expectation
from testbed.scenario.graph import topology
from testbed.scenario.metric_names import METRICS, pattern_of, type_of
from testbed.usage import Usage
from testbed.verify import Verdict

TEXT = """
name: hand
topology: {workers: 2}
links: {rate: 10mbit}
switch: {lanes: 100, slots: 4}
workload: {elements: 1050, dtype: DTYPE, rounds: 3, window: 4}
"""


def scenario(tmp_path: Path, dtype: str = "float32", extra: str = "") -> Scenario:
    path = tmp_path / "hand.yaml"
    path.write_text(TEXT.replace("DTYPE", dtype) + extra)
    return load(path).points[0].scenario


def ended(rank: int, start_s: float, end_s: float, **stats: int) -> dict:
    return {
        "event": "round",
        "rank": rank,
        "start_ns": round(start_s * 1e9),
        "end_ns": round(end_s * 1e9),
        "cpu_s": 0.25,
        "stats": {"sent": 11, "retransmitted": 0, "malformed": 0, **stats},
    }


PORTS = {"ports": {"1": {"tx_errors": 1, "tx_drops": 50}, "2": {"rx_truncated": 2}}}


def measurements() -> Measurements:
    rounds = [
        {0: ended(0, 1.0, 1.9), 1: ended(1, 1.1, 2.0, retransmitted=2)},  # 1.0 s
        {0: ended(0, 3.0, 3.5), 1: ended(1, 2.9, 3.4, malformed=1)},  # 0.6 s
        {0: ended(0, 5.0, 5.8), 1: ended(1, 5.0, 5.7)},  # 0.8 s
    ]
    directions = [
        DirectionStatistics("h1-s1", "h1->s1", 40, 600_000, 40, 3, 0),
        DirectionStatistics("h1-s1", "s1->h1", 40, 10_000, 40, 1, 2),
        DirectionStatistics("h2-s1", "h2->s1", 40, 20_000, 40, 0, 0),
        DirectionStatistics("h2-s1", "s1->h2", 40, 30_000, 40, 0, 0),
    ]
    return Measurements(
        rounds=rounds,
        verdict=Verdict(0, None, 1e-9, 2e-9, True),
        statistics=NetworkStatistics(
            tuple(directions), (SwitchStatistics("s1", 0.5, 7, PORTS),), {}
        ),
        counters={"s1": {"new": 22, "refused": 4, "malformed": 5}},
        usage=Usage(2.4, {"s1": 0.5, "worker 0": 0.75}, {"s1": 0.0}, 1.5, 0.0),
        processors=2,
    )


def test_bounds_of_floats_count_the_exponents(tmp_path: Path) -> None:
    """11 chunks of 54 + 400 bytes, and 4 exponent frames of 54 for the first window."""
    s = scenario(tmp_path)
    found = bounds(s, topology(s))
    assert 11 * 454 + 4 * 54 == 5210
    assert found.link_s == pytest.approx(5210 * 8 / 10e6)
    assert found.payload_s == pytest.approx(4200 * 8 / 10e6)


def test_bounds_of_integers_do_not(tmp_path: Path) -> None:
    s = scenario(tmp_path, "int32")
    assert bounds(s, topology(s)).link_s == pytest.approx(11 * 454 * 8 / 10e6)


def test_the_slowest_link_is_the_bound(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    slow = replace(s.links, overrides=())
    graph = topology(replace(s, links=slow))
    link = graph.link("h2-s1")
    graph = graph.with_link("h2-s1", b_to_a=replace(link.b_to_a, rate_bps=5_000_000))
    assert bounds(s, graph).link_s == pytest.approx(5210 * 8 / 5e6)


def test_a_round_lasts_from_first_start_to_last_end() -> None:
    assert round_time_s({0: ended(0, 1.0, 1.9), 1: ended(1, 1.1, 2.0)}) == pytest.approx(1.0)


def test_the_whole_of_it(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    metrics = compute(s, topology(s), measurements())
    assert metrics["exact"] is True
    assert metrics["error"] == {"max_abs": 1e-9, "bound": 2e-9, "within": True}
    assert metrics["allreduce"]["time_s"] == {
        "median": pytest.approx(0.8),
        "min": pytest.approx(0.6),
        "max": pytest.approx(1.0),
        "all": pytest.approx([1.0, 0.6, 0.8]),
    }
    assert metrics["allreduce"]["ate_per_s"] == pytest.approx(1050 / 0.8)
    assert metrics["link_bound_ratio"] == pytest.approx(0.8 / (5210 * 8 / 10e6))
    assert metrics["workers"]["1"]["retransmitted"] == 2
    assert metrics["workers"]["0"]["sent"] == 33
    assert metrics["workers"]["0"]["cpu_s"] == 0.75
    assert metrics["totals"] == {
        "retransmitted": 2,
        "injected_drops": 4,
        "other_drops": 2 + 7 + 3,
        "malformed": 1 + 4 + 5,
    }
    assert metrics["switches"]["s1"]["packets"]["new"] == 22
    assert metrics["links"]["h1-s1"]["s1->h1"]["dropped"] == 1
    # 600 kB in 2.4 s at 10 Mbit/s is a fifth of what the link carries.
    assert "carried 20% of its rate" in " ".join(metrics["fidelity"]["reasons"])


def leaves(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in leaves(v, f"{path}.{k}" if path else k)]
    return [path]


def test_every_metric_is_documented_and_every_documented_one_exists(tmp_path: Path) -> None:
    s = scenario(tmp_path)
    measured = measurements()
    full = dict.fromkeys(["new", "duplicate", "stale", "complete", "refused", "repeated"], 1)
    measured = replace(measured, counters={"s1": {**full, "malformed": 0}})
    metrics = {"ok": True, "reason": "", **compute(s, topology(s), measured)}
    found = leaves(metrics)
    assert {pattern_of(path) for path in found} == set(METRICS)
    for path in found:
        kinds = {"flag": bool, "text": str, "list": list, "number": (int, float)}
        assert isinstance(lookup(metrics, path), kinds[type_of(pattern_of(path))]), path


def test_the_documentation_lists_every_metric() -> None:
    text = (Path(__file__).parents[3] / "docs/results.md").read_text()
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, re.MULTILINE))
    assert {name: meaning for name, meaning in rows.items() if name in METRICS} == METRICS


def test_failures_name_what_was_expected_and_what_was_found() -> None:
    metrics = {"exact": False, "link_bound_ratio": 1.30001, "totals": {"other_drops": 3}}
    expected = [
        Expectation("exact", equals=True),
        Expectation("link_bound_ratio", maximum=1.3),
        Expectation("totals.other_drops", maximum=3),
        Expectation("workers.9.sent", minimum=1),
    ]
    assert failures(metrics, expected) == [
        "expected exact = true, got false",
        "expected link_bound_ratio <= 1.3, got 1.30001",
        "expected workers.9.sent >= 1, got nothing",
    ]
