"""Floats in contributions of few bits: runs that are judged by NumPy, what crosses links, what is
refused, and that wrong sums are seen."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from system_runs import DISORDER, ELEMENTS, LANES, ROUNDS, Run, scenario_text, ways

from agglab.hosts.wire import Batch, narrow_datagram_bytes
from agglab.systems.switchml import narrow
from agglab.systems.switchml.system import SwitchML
from agglab.testbed.scenario import ScenarioError, load

RACKS = "kind: two_tier, racks: 2, workers: 4"
MIXED = "kind: ring_of_racks, racks: 3, workers: 2"
"""Switches with children of both kinds: workers and switches."""


@pytest.mark.long(but=["-kind: ring_of_racks, racks: 3, workers: 2-16"])
@pytest.mark.parametrize("bits", [16, 8, 4])
@pytest.mark.parametrize("topology", ["kind: rack, workers: 3", RACKS, MIXED])
@pytest.mark.parametrize("more", ["", ", rounding: stochastic", ", scale_log2: 3"])
def test_sums_are_right_to_the_bit_under_loss_and_disorder(
    tried: Run, bits: int, topology: str, more: str
) -> None:
    lines = [f"switchml: {{wire_bits: {bits}{more}}}", DISORDER]
    code, metrics = tried(scenario_text("switchml", topology, loss="1%", more=lines))
    assert (code, metrics["exact"], metrics["wrong_results"]) == (0, True, 0)
    assert 0 < metrics["error"]["max_abs"] <= metrics["error"]["bound"]
    assert metrics["links_as_predicted"] is True


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_bytes_are_those_of_the_page(tried: Run, bits: int) -> None:
    """Workers send half as many bytes as they receive, headers aside."""
    _, metrics = tried(scenario_text("switchml", more=[f"switchml: {{wire_bits: {bits}}}"]))
    chunks = -(-ELEMENTS * bits // (16 * LANES))
    found = ways(metrics)
    for host in ("h1", "h4"):
        up, down = found[f"{host}->s1"]["bytes"], found[f"s1->{host}"]["bytes"]
        assert down - up == ROUNDS * chunks * 2 * LANES


def test_predictions_that_are_wrong_are_seen(tried: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = narrow.narrow_frame_bytes
    monkeypatch.setattr(narrow, "narrow_frame_bytes", lambda *given: honest(*given) + 1)
    _, metrics = tried(scenario_text("switchml", more=["switchml: {wire_bits: 8}"]))
    assert metrics["links_as_predicted"] is False


@pytest.mark.parametrize(
    ("topology", "lines", "told"),
    [
        ("kind: rack, workers: 2", ["switchml: {wire_bits: 12}"], "'12' is none of these"),
        (
            "kind: rack, workers: 2",
            ["switchml: {wire_bits: 8, bits: 9}"],
            "an integer of 9 bits does not fit in the 8 of `wire_bits`",
        ),
        (
            "kind: rack, workers: 18",
            ["switchml: {wire_bits: 4}"],
            "the sum of 18 workers does not fit in 8 bits; allowed: at most 17 workers",
        ),
    ],
)
def test_what_cannot_be(tmp_path: Path, topology: str, lines: list[str], told: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(scenario_text("switchml", topology, more=lines))
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert told in str(caught.value)


@pytest.mark.long
def test_a_window_that_fills_the_links_is_not_called_small(tried: Run) -> None:
    """Most bytes cross the links downwards, where frames have full width."""
    topology = "kind: rack, workers: 2"
    text = scenario_text("switchml", topology, more=["switchml: {wire_bits: 4}"])
    text = text.replace("queue: 4MB", "queue: 4MB, delay: 1ms").replace("lanes: 64", "lanes: 256")
    code, metrics = tried(text, "workload.elements=400_000", "workload.window=16")
    assert (code, metrics["reason"]) == (0, "")
    assert metrics["window_share"] > 0.9 and 1 <= metrics["link_bound_ratio"] < 1.1


def test_bounds_are_below_times_where_the_way_up_is_slow(tried: Run) -> None:
    text = scenario_text("switchml", more=["switchml: {wire_bits: 8}"])
    slow = 'overrides: [{match: "h*->s1", rate: 5mbit}]'
    _, metrics = tried(text.replace("queue: 4MB", f"queue: 4MB, {slow}"))
    assert metrics["payload_bound_s"] <= metrics["link_bound_s"]
    assert 1 <= metrics["link_bound_ratio"] < 1.1


def test_attackers_send_well_formed_narrow_contributions(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    jobs = "jobs: [{workers: [h1, h2, h3]}]"
    path.write_text(scenario_text("switchml", more=["switchml: {wire_bits: 8}", jobs]))
    resolved = load(path).points[0].resolved
    found = [frame for _, frame in itertools.islice(SwitchML().attack("1", resolved, "h4"), 400)]
    bodies = [frame[42:] for frame in found if len(frame) == 42 + narrow_datagram_bytes(LANES)]
    assert sum(Batch.of([body], LANES).well_formed()[0] for body in bodies) > 5
