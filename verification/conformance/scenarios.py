"""Runs scenarios with `conformance: true` on every pair of compiler and switch. All pairs must give
the same integer sums, bit for bit. If the right sums depend on when packets arrive, each pair's
sums only have to be right."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agglab.testbed.base.exit_codes import FAILED, LACKING, PASSED, UNDECIDED
from agglab.testbed.run.result_folder import point_folder
from agglab.testbed.scenario import Suite, find, load, names, workloads
from agglab.testbed.scenario.load import Point
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ResolvedScenario
from p4native.verification.conformance import Pair
from p4native.verification.peers import last_line

COMPILERS = {"p4c": "p4c", "p4native": "agglab"}
"""The value of `switch.compiler` for each compiler of a pair."""
Sums = Mapping[tuple[str, int], str]
"""(job, round) -> SHA-256 of the round's integer sums."""


class NotRun(Exception):
    """Raised if a scenario could not run because the machine lacks something. The text is the
    message of the process that ran it."""


@dataclass(frozen=True)
class ScenarioResult:
    """The result of one scenario on one pair. sums: a hash of the sums of each job and round; None
    if right sums depend on when packets arrive. time_s: the slowest job's median time of a round;
    None if no round ended. trouble: a message that says why there is no result."""

    sums: Sums | None
    right: bool
    time_s: float | None
    trouble: str = ""


def marked() -> list[str]:
    """Returns the names of the scenarios that are marked for conformance."""
    return [name for name in names() if load(find(name)).points[0].resolved.scenario.conformance]


def run_on(name: str, pair: Pair, results: Path) -> Mapping[str, ScenarioResult]:
    """Runs a scenario in a separate process, on real links, and returns the result of each of its
    runs.

    The key of a run consists of the swept values and the contender. For a scenario with a single
    run, it is "". Raises NotRun if the machine lacks something, or if BMv2 does not start or ends
    too early.
    """
    suite = load(find(name))
    folders = _folders(suite)
    command = [sys.executable, "-m", "agglab.testbed", "run", name, "--results", str(results)]
    for setting in (
        "backend=mininet",
        f"switch.target={pair.switch}",
        f"switch.compiler={COMPILERS[pair.compiler]}",
    ):
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == LACKING:
        raise NotRun(done.stderr.strip())
    if done.returncode not in (PASSED, FAILED, UNDECIDED):
        trouble = f"exit code {done.returncode}: {done.stderr.strip()}"
        return dict.fromkeys(folders, ScenarioResult({}, False, None, trouble))
    latest = results / name / "latest"
    found = {run: _read(latest / folder, pair, done.stderr) for run, folder in folders.items()}
    for run in _timed(suite):
        found[run] = replace(found[run], sums=None)
    return found


def _folders(suite: Suite) -> dict[str, str]:
    """Returns, for each run, the folder that it writes, relative to the folder of the whole
    scenario's results."""
    found = {}
    for number, group in enumerate(suite.groups):
        place = f"{point_folder(number)}/" if suite.axes else ""
        for point in group:
            found[_label(point)] = place + point.contender
    return found


def _timed(suite: Suite) -> list[str]:
    """Returns the runs in which the right sums depend on when packets arrive."""
    return [
        _label(point)
        for group in suite.groups
        for point in group
        if any(_depends_on_time(point.resolved, job) for job in point.resolved.jobs)
    ]


def _depends_on_time(resolved: ResolvedScenario, job: Job) -> bool:
    """Returns whether the right results of a job depend on when packets arrive."""
    right = resolved.system.right_results(resolved, resolved.whole(job), None)
    return right.of_received is not None or workloads.KINDS[job.work.kind].depends_on_time(job.work)


def _label(point: Point) -> str:
    return ", ".join(filter(None, (point.label, point.contender)))


def _read(folder: Path, pair: Pair, said: str) -> ScenarioResult:
    """Reads the results of one run. said: the output of the process that ran it."""
    metrics = json.loads((folder / "metrics.json").read_text())
    if "exact" not in metrics:  # it broke off before there was anything to judge
        trouble = str(metrics["reason"])
        if pair.switch == "bmv2":
            raise NotRun(f"on {pair}: could not run: {trouble}: {last_line(said)}")
        return ScenarioResult({}, False, None, trouble)
    lines = (folder / "events.jsonl").read_text().splitlines()
    verified = [event for event in map(json.loads, lines) if event["event"] == "verified"]
    sums = {(event["of"], event["round"]): event["sums_sha256"] for event in verified}
    medians = (job["allreduce"]["time_s"]["median"] for job in metrics.get("jobs", {}).values())
    slowest = max((median for median in medians if median), default=None)
    right = bool(metrics.get("exact")) and not metrics["wrong_results"]
    return ScenarioResult(sums, right, slowest)


def by_run(
    ran: Mapping[Pair, Mapping[str, ScenarioResult]],
) -> Mapping[str, Mapping[Pair, ScenarioResult]]:
    """Returns the same results with the run as the outer key and the pair as the inner one."""
    first = next(iter(ran.values()))
    return {run: {pair: runs[run] for pair, runs in ran.items()} for run in first}


def compare(ran: Mapping[Pair, ScenarioResult]) -> list[str]:
    """Returns lines about pairs whose sums are wrong, missing or different from those of the first
    pair."""
    found: list[str] = []
    first = next(iter(ran))
    for pair, one in ran.items():
        if one.trouble:
            found.append(f"on {pair}: {one.trouble}")
        elif not one.right:
            found.append(f"on {pair}: not every sum or result is right")
        wanted, sums = ran[first].sums, one.sums
        if wanted is None or sums is None:
            continue
        for key in sorted(wanted.keys() | sums.keys()):
            if wanted.get(key) != sums.get(key):
                job, number = key
                found.append(f"on {pair}: {job}, round {number}: other sums than on {first}")
    return found


def times(ran: Mapping[Pair, ScenarioResult]) -> str:
    """Returns the time of a round for each pair in seconds, and its ratio to the fastest one."""
    known = {pair: one.time_s for pair, one in ran.items() if one.time_s}
    fastest = min(known.values(), default=1.0)
    parts: Sequence[str] = [f"{p} {t:.3f} s ({t / fastest:.2f})" for p, t in known.items()]
    return ", ".join(parts)
