"""Judges in virtual time what a run on real links leaves in doubt.

A timer cannot tell a switch that answered late from a process that was late. In virtual time no
process is ever late, and every frame is followed. Therefore the events of the protocol decide: what
a switch had when it answered, and whether it answered at once or only when it was asked again.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agglab.testbed.base.errors import AgentFailed, MachineLacks, NodeFailed
from agglab.testbed.experiment.single_run import Experiment
from agglab.testbed.results.metrics import compute
from agglab.testbed.run.programs.prepare import Prepared, load_workers
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import Point, ResolvedScenario, ScenarioError, load, to_yaml
from agglab.testbed.scenario.workloads import KINDS

FRAMES_MAX = 200_000
"""The most frames that the workers and servers of a run may have sent if it is to be judged in
virtual time. On a processor of 2020, so many frames take about ten seconds."""
SETTINGS = ("backend=virtual", "series.record=false", "switch.pcap=false", "switch.log=off")


@dataclass(frozen=True)
class Opinion:
    """What virtual time says about a scenario. findings: those of the run in virtual time, as in
    metrics.json; None if there was no such run. lacking: why there was none."""

    findings: Sequence[Mapping[str, Any]] | None
    lacking: str = ""

    def to_json(self) -> dict[str, Any]:
        findings = None if self.findings is None else list(self.findings)
        return {"findings": findings, "lacking": self.lacking}


def second_opinion(point: Point, prepared: Prepared, frames: int, scratch: Path) -> Opinion:
    """Returns what a run of the same scenario in virtual time shows. frames: how many frames the
    agents sent in the run on real links. scratch: a folder that does not exist yet; what is written
    there is of no further use."""
    if unclear := _unpredictable(point.resolved):
        return Opinion(None, unclear)
    if frames > FRAMES_MAX:
        return Opinion(None, f"{frames} packets are more than the {FRAMES_MAX} that are simulated")
    scratch.mkdir()
    try:
        twin = _in_virtual_time(point.resolved, scratch)
        return Opinion(_findings(twin, prepared, scratch))
    except ScenarioError as error:
        return Opinion(None, f"it cannot run there ({error.problems[0].what})")
    except (AgentFailed, NodeFailed, MachineLacks) as error:
        return Opinion(None, f"it cannot run there ({error})")


def _unpredictable(resolved: ResolvedScenario) -> str:
    kinds = {job.work.kind: job.name for job in resolved.jobs}
    texts = (KINDS[kind].unpredictable.format(name) for kind, name in kinds.items())
    return next(filter(None, texts), "")


def _in_virtual_time(resolved: ResolvedScenario, scratch: Path) -> ResolvedScenario:
    """Returns the same scenario with another clock. Raises ScenarioError if it cannot have that."""
    path = scratch / "scenario.yaml"
    path.write_text(to_yaml(resolved), encoding="utf-8")
    points = load(path, SETTINGS).points
    load_workers(points)
    return points[0].resolved


def _findings(
    resolved: ResolvedScenario, prepared: Prepared, scratch: Path
) -> Sequence[Mapping[str, Any]]:
    folder = RunFolder(scratch / "results")
    run = Experiment(resolved, prepared, folder, scratch / "network", io.StringIO())
    findings: Sequence[Mapping[str, Any]] = compute(resolved, run.measure())["findings"]
    return findings
