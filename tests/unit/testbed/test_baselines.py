"""The shipped comparison, in virtual time and smaller: what it expects holds, can fail, and is what
theory says."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.scenario import find, load

SMALL = ("backend=virtual", "workload.elements=200_000", "workload.rounds=1")
WORKERS = (2, 4, 8)
FRAME_OVERHEAD = 1.06
"""Headers beside 1400 bytes of values, and a last packet that is not full."""


@cache
def baselines(folder: Path, *settings: str) -> dict[str, Any]:
    run(load(find("baselines"), [*SMALL, *settings]), folder, settings, io.StringIO())
    metrics: dict[str, Any] = json.loads((folder / "baselines/latest/metrics.json").read_text())
    return metrics


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return baselines(tmp_path_factory.mktemp("baselines"))


def test_what_it_expects_holds(whole: dict[str, Any]) -> None:
    assert whole["ok"], whole["reason"]
    assert whole["exact"]
    assert [point["settings"] for point in whole["points"]] == [
        {"topology.workers": str(n)} for n in WORKERS
    ]


@pytest.mark.parametrize(
    ("contender", "tensors"),
    [
        ("switchml", lambda n: 1),
        ("ring", lambda n: 2 * (n - 1) / n),
        ("ps", lambda n: n),
        ("ps_beside", lambda n: 2 * (n - 1) / n),
    ],
)
def test_bounds_are_those_of_theory(whole: dict[str, Any], contender: str, tensors: Any) -> None:
    """So many times the tensor crosses the busiest link, and in that time a round can be done."""
    for workers, point in zip(WORKERS, whole["points"], strict=True):
        own = point["metrics"]["contenders"][contender]
        least = tensors(workers) * own["payload_bound_s"]
        assert least < own["link_bound_s"] < least * FRAME_OVERHEAD, workers
        assert least < own["allreduce"]["time_s"]["median"] < least * FRAME_OVERHEAD * 1.1


@pytest.mark.long(but=["settings0-workers 8: ring: expected link_bound_ratio <= 1.1"])
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["compare.ring.workload.window=2"], "workers 8: ring: expected link_bound_ratio <= 1.1"),
        (["compare.ps.workload.window=2"], "workers 2: ps: "),
        (["compare.ps.ps.servers=[]"], "workers 2: expected ratio.ps.switchml.link_bound_s >= 2"),
        (["compare.ps.ps.servers=[]"], "expected growth.ps.link_bound_s >= 3.99"),
        (["compare.ps.ps.servers=[]"], "expected growth.ps.allreduce.time_s.median >= 3.4"),
        (["compare.ring.system=switchml"], "expected growth.ring.link_bound_s >= 1.7"),
        (
            ["compare.switchml.system=ring"],
            "expected growth.switchml.allreduce.time_s.median <= 1.1",
        ),
        (
            ["topology.servers=2", "compare.ring.system=ps", "compare.ring.ps.servers=p1"],
            "workers 8: expected ratio.ring.switchml.link_bound_s >= 1 and <= 1.8, got",
        ),
    ],
)
def test_what_it_expects_can_fail(
    tmp_path_factory: pytest.TempPathFactory, settings: list[str], reason: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "-".join(settings).replace("/", "")
    metrics = baselines(folder, "workload.elements=60_000", *settings)
    assert not metrics["ok"]
    assert reason in metrics["reason"]
    assert metrics["exact"], "slower is not wrong"
