"""A fault on one target twice: allowed once the first has ended, refused before."""

from __future__ import annotations

from pathlib import Path

import pytest
from system_runs import scenario_text

from agglab.testbed.scenario import ScenarioError, load

TARGETS = {"worker_restart": "worker: h1", "switch_restart": "switch: s1"}
TARGETS |= {"switch_reprogram": "switch: s1", "attack": "host: h4, frames: 9"}


def checked(folder: Path, kind: str, first: str, second: str) -> None:
    entries = [f"- {{kind: {kind}, {TARGETS[kind]}, {when}}}" for when in (first, second)]
    jobs = "jobs: [{workers: [h1, h2, h3]}]"
    path = folder / "x.yaml"
    path.write_text(scenario_text("switchml", more=[jobs, "faults:", *entries]))
    load(path)


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("worker_restart", "at: 1s", "at: 1.1s"),
        ("switch_restart", "at: 1s", "at: 1.1s"),
        ("switch_reprogram", "at: 1s", "at: 1.1s"),
        ("attack", "at: 1s", "at: 2.1s"),
        ("attack", "at: 1s, for: 2s", "at: 3.1s"),
        ("switch_restart", "at: 1s, for: 0.5s", "at: 1.6s"),
    ],
)
def test_one_after_the_other(tmp_path: Path, kind: str, first: str, second: str) -> None:
    checked(tmp_path, kind, first, second)


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("worker_restart", "at: 1s", "at: 1s"),
        ("switch_reprogram", "at: 1s", "at: 1s"),
        ("attack", "at: 1s", "at: 1.9s"),
        ("switch_restart", "at: 1s, for: 0.5s", "at: 1.4s"),
    ],
)
def test_at_the_same_time(tmp_path: Path, kind: str, first: str, second: str) -> None:
    with pytest.raises(ScenarioError, match="has ended on the same"):
        checked(tmp_path, kind, first, second)
