"""What losses cost in virtual time: packets sent again, and time against what losses allow."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import load

TEXT = """
name: losses
backend: virtual
topology: TOPOLOGY
links: {rate: 1gbit, loss: LOSS}
switch: {lanes: auto, slots: 64}
workload: {elements: 65_536, rounds: 1}
"""
RACK, RACKS = "{kind: rack, workers: 64}", "{kind: two_tier, racks: 4, workers: 16}"


def outcome(folder: Path, topology: str, loss: str, seed: int = 1) -> dict[str, Any]:
    path = folder / "losses.yaml"
    path.write_text(TEXT.replace("TOPOLOGY", topology).replace("LOSS", loss))
    settings = [f"seed={seed}"]
    run(load(path, settings), folder, settings, io.StringIO())
    metrics: dict[str, Any] = json.loads((folder / "losses/latest/metrics.json").read_text())
    assert metrics["exact"]
    return metrics


@pytest.mark.parametrize("topology", [RACK, RACKS])
def test_without_loss_nothing_is_sent_again(topology: str, tmp_path: Path) -> None:
    metrics = outcome(tmp_path, topology, "0%")
    assert metrics["totals"]["retransmitted"] == 0
    assert metrics["lossy_bound_ratio"] < 1.02


@pytest.mark.long
@pytest.mark.parametrize(
    ("topology", "loss", "most"),
    [(RACK, "0.5%", 2.3), (RACK, "1%", 2.5), (RACKS, "0.5%", 2.3), (RACKS, "1%", 2.8)],
)
def test_losses_among_64_workers_cost_a_small_multiple_of_what_they_must(
    topology: str, loss: str, most: float, tmp_path: Path
) -> None:
    """In the median of three seeds. Every packet of the 64 may be sent again once on average."""
    runs = [outcome(tmp_path, topology, loss, seed) for seed in (1, 2, 3)]
    assert sorted(m["lossy_bound_ratio"] for m in runs)[1] < most
    for metrics in runs:
        sent = sum(worker["sent"] for worker in metrics["workers"].values())
        again = metrics["totals"]["retransmitted"]
        assert again < sent - again
        assert metrics["totals"]["other_drops"] == 0


def test_a_rack_asks_its_root_once_for_what_was_lost_between_them(tmp_path: Path) -> None:
    """Not once for each of its workers: an uplink carries each chunk less than twice."""
    metrics = outcome(tmp_path, RACKS, "1%")
    repeated = sum(s["packets"]["partial_repeated"] for s in metrics["switches"].values())
    complete = sum(s["packets"]["complete"] for s in metrics["switches"].values())
    assert 0 < repeated < complete / 2


def test_heavy_loss_is_repaired_at_the_pace_of_the_path(tmp_path: Path) -> None:
    """30 % on every link and way; with doubling timeouts this took 170 times the bound."""
    runs = [outcome(tmp_path, "{kind: rack, workers: 4}", "30%", seed) for seed in (1, 2, 3)]
    assert sorted(m["lossy_bound_ratio"] for m in runs)[1] < 12


SLOW_LINKS = """
name: losses
backend: virtual
topology: {kind: two_tier, racks: 2, workers: 2}
links: {rate: 20mbit, loss: LOSS}
switch: {lanes: 365}
workload: {elements: 30_000, rounds: 3}
"""


@pytest.mark.parametrize("loss", ["0.5%", "1%"])
def test_values_are_not_expected_as_soon_as_openings_were(loss: str, tmp_path: Path) -> None:
    """An opening crosses a link in 40 us, a packet with values in 600 us."""
    path = tmp_path / "losses.yaml"
    path.write_text(SLOW_LINKS.replace("LOSS", loss))
    run(load(path, ["seed=2"]), tmp_path, ["seed=2"], io.StringIO())
    metrics = json.loads((tmp_path / "losses/latest/metrics.json").read_text())
    assert metrics["exact"] and metrics["findings"] == []
    assert metrics["totals"]["injected_drops"] > 0
