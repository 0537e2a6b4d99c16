"""Times, packets and retransmissions of the scenarios in virtual time, as committed. A change of
behaviour shows up in the diff of docs/virtual-results.md (BLESS=1 writes it)."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.results.side_by_side import runs_of
from agglab.testbed.scenario import find, load

TABLE = REPOSITORY / "docs" / "virtual-results.md"
SMALL = ("workload.elements=50_000", "workload.rounds=2")
CASES: list[tuple[str, tuple[str, ...]]] = [
    *(
        (name, (*SMALL, f"seed={seed}"))
        for name in ("quickstart", "loss", "two-racks", "leaf-spine", "three-tier", "ring")
        for seed in (1, 2)
    ),
    *(
        (name, (*SMALL, f"seed={seed}"))
        for name in ("ring-all-reduce", "parameter-server", "servers-beside-workers")
        for seed in (1, 2)
    ),
    ("baselines", SMALL),
    ("mtu9000", SMALL),
    ("fat-tree", SMALL),
    ("two-jobs", SMALL),
    ("disorder", SMALL),
    ("survivors", ()),
    ("switch-restart", ()),
    ("worker-killed", ()),
    ("link-pulled", ()),
]
HEAD = """# Results in virtual time

What scenarios come to with `backend: virtual`, exactly: `make bless` writes this file, a test
compares it. `settings` are those of `--set`; times are of each round; packets are those that the
job's workers sent, of which `again` were retransmissions; `lost` are the frames that impairments
took on all links.

| scenario | settings | job | rounds, us | sent | again | lost | ends |
|---|---|---|---|---|---|---|---|
"""


def rows(name: str, settings: tuple[str, ...], folder: Path) -> Iterator[str]:
    suite = load(find(name), [*settings, "backend=virtual"])
    run(suite, folder, settings, io.StringIO())
    metrics = json.loads((folder / suite.name / "latest" / "metrics.json").read_text())
    for one in runs_of(metrics):
        said = " ".join([*settings, *(f"{path}={value}" for path, value in one.settings.items())])
        yield from _jobs(f"{name}: {one.contender}" if one.contender else name, said, one.metrics)


def _jobs(name: str, settings: str, metrics: Mapping[str, Any]) -> Iterator[str]:
    lost = metrics["totals"]["injected_drops"]
    for job, of_job in metrics["jobs"].items():
        times = [f"{time_s * 1e6:.3f}" for time_s in of_job["allreduce"]["time_s"]["all"]]
        workers = of_job["workers"].values()
        sent, again = (sum(w[key] for w in workers) for key in ("sent", "retransmitted"))
        right = of_job["exact"] and not of_job["wrong_results"]
        ends = "exact" if right else "WRONG"
        if metrics.get("failure"):
            ends += ", failed as declared" if metrics["ok"] else ", FAILED"
        cells = (name, settings, job, " ".join(times), sent, again, lost, ends)
        yield f"| {' | '.join(map(str, cells))} |"


@pytest.mark.long
def test_golden_results_in_virtual_time(tmp_path: Path) -> None:
    found = HEAD + "".join(
        f"{row}\n" for name, settings in CASES for row in rows(name, settings, tmp_path)
    )
    if os.environ.get("BLESS"):
        TABLE.write_text(found)
    assert found == TABLE.read_text()
    assert "WRONG" not in found and "FAILED" not in found


@pytest.mark.parametrize("name", ["two-racks", "disorder"])
def test_two_runs_of_a_seed_are_alike_to_the_byte(name: str, tmp_path: Path) -> None:
    suite = load(find(name), [*SMALL, "backend=virtual"])
    events, hashes = [], []
    for folder in (tmp_path / "first", tmp_path / "second"):
        run(suite, folder, SMALL, io.StringIO())
        result = folder / suite.name / "latest"
        events.append((result / "events.jsonl").read_bytes())
        hashes.append(json.loads((result / "manifest.json").read_text())["events_sha256"])
    assert events[0] == events[1] and len(events[0]) > 1000
    assert hashes[0] == hashes[1] and hashes[0]
    other = load(find(name), [*SMALL, "backend=virtual", "seed=77"])
    run(other, tmp_path / "third", SMALL, io.StringIO())
    assert (tmp_path / "third" / suite.name / "latest" / "events.jsonl").read_bytes() != events[0]


@pytest.mark.parametrize("name", ["quickstart", "disorder"])
def test_some_of_the_golden_results(name: str, tmp_path: Path) -> None:
    """Those of the first case of a scenario: all of them take ten seconds."""
    settings = next(settings for each, settings in CASES if each == name)
    found = list(rows(name, settings, tmp_path))
    assert found and {*found} <= {*TABLE.read_text().splitlines()}
