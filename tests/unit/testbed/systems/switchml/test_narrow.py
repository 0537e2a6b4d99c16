"""Floats in contributions of few bits: runs that are judged by NumPy, what crosses links, what is
refused, and that wrong sums are seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from system_runs import DISORDER, ELEMENTS, LANES, ROUNDS, Run, scenario_text, ways

from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.systems.switchml import narrow

RACKS = "kind: two_tier, racks: 2, workers: 4"
MIXED = "kind: ring_of_racks, racks: 3, workers: 2"
"""Switches with children of both kinds: workers and switches."""


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
