"""Scenarios that say `conformance: true`, on every pair: the same integer sums, bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agglab.testbed.exit_codes import FAILED, LACKING, PASSED
from agglab.testbed.peers import last_line
from agglab.testbed.record import point_folder
from agglab.testbed.scenario import Suite, find, load, names
from agglab.verification.conformance.pairs import Pair

Sums = Mapping[tuple[str, int], str]
"""(job, round) -> SHA-256 of its integer sums."""


class NotRun(Exception):
    """This machine lacks something: the run's words."""


@dataclass(frozen=True)
class ScenarioResult:
    """One scenario on one pair. time_s: the slowest job's median time of a round; None if none
    ended. trouble: what the run said where there is no result."""

    sums: Sums
    right: bool
    time_s: float | None
    trouble: str = ""


def marked() -> list[str]:
    """Names of the scenarios that are marked for conformance."""
    return [name for name in names() if load(find(name)).points[0].resolved.scenario.conformance]


def run_on(name: str, pair: Pair, results: Path) -> Mapping[str, ScenarioResult]:
    """Run it in a process of its own, on real links; the result of each of its runs, by the swept
    values and the contender ("" where it is one run). Raises NotRun when the machine lacks
    something, or BMv2 does not start or does not stay."""
    folders = _folders(load(find(name)))
    command = [sys.executable, "-m", "agglab.testbed", "run", name, "--results", str(results)]
    for setting in (
        "backend=mininet",
        f"switch.target={pair.switch}",
        f"switch.compiler={pair.compiler}",
    ):
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == LACKING:
        raise NotRun(done.stderr.strip())
    if done.returncode not in (PASSED, FAILED):
        trouble = f"exit code {done.returncode}: {done.stderr.strip()}"
        return dict.fromkeys(folders, ScenarioResult({}, False, None, trouble))
    latest = results / name / "latest"
    return {run: _read(latest / folder, pair, done.stderr) for run, folder in folders.items()}


def _folders(suite: Suite) -> dict[str, str]:
    """Returns for each run the folder that it writes, relative to the folder of all runs."""
    found = {}
    for number, group in enumerate(suite.groups):
        place = f"{point_folder(number)}/" if suite.axes else ""
        for point in group:
            run = ", ".join(filter(None, (point.label, point.contender)))
            found[run] = place + point.contender
    return found


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
    """The same, with what is compared together: one run on all pairs."""
    first = next(iter(ran.values()))
    return {run: {pair: runs[run] for pair, runs in ran.items()} for run in first}


def compare(ran: Mapping[Pair, ScenarioResult]) -> list[str]:
    """Lines about pairs whose sums are wrong, missing or not those of the first."""
    found = []
    first = next(iter(ran))
    for pair, one in ran.items():
        if one.trouble:
            found.append(f"on {pair}: {one.trouble}")
        elif not one.right:
            found.append(f"on {pair}: not every sum or result is right")
        for key in sorted(ran[first].sums.keys() | one.sums.keys()):
            if ran[first].sums.get(key) != one.sums.get(key):
                job, number = key
                found.append(f"on {pair}: {job}, round {number}: other sums than on {first}")
    return found


def times(ran: Mapping[Pair, ScenarioResult]) -> str:
    """Returns the seconds of a round, and their ratios to the fastest."""
    known = {pair: one.time_s for pair, one in ran.items() if one.time_s}
    fastest = min(known.values(), default=1.0)
    parts: Sequence[str] = [f"{p} {t:.3f} s ({t / fastest:.2f})" for p, t in known.items()]
    return ", ".join(parts)
