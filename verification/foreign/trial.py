"""Runs a system while the outsider sends frames, and judges the run."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, cast

from agglab.testbed.experiment.single_run import Experiment
from agglab.testbed.judge.frame_conservation import imbalances
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.run.programs.prepare import prepare
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import SOURCE, System
from agglab.testbed.systems.frames import end_of
from agglab.testbed.virtual import built
from agglab.verification.foreign.frames import ForeignHost, ends_of
from agglab.verification.foreign.recorded import recorded
from agglab.verification.foreign.scenario import ELEMENTS_PER_FRAME, OUTSIDER, names, resolved


@dataclass(frozen=True)
class ForeignTrafficResult:
    """The result of a run. sent: the number of foreign frames of each kind. counted: the counters
    of the switch, under the names that the system gives them. troubles: one line for each thing
    that is wrong."""

    sent: Mapping[str, int]
    counted: Mapping[str, int]
    troubles: tuple[str, ...]


class SystemUnderAttack:
    """A wrapper of a system that replaces the system's attack frames by those of the outsider."""

    def __init__(self, system: System, outsider: ForeignHost) -> None:
        self._system, self._outsider = system, outsider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)

    def attack(
        self, key: str, resolved: ResolvedScenario, host: str
    ) -> Iterator[tuple[str, bytes]]:
        return self._outsider.frames()


def build(system: str, frames: int, seed: int) -> None:
    """Compiles the programs that `attempt` needs to native code, so that `attempt` finds them in
    the cache."""
    programs = prepare(_disturbed(system, frames, seed)).programs
    built({node: program.json for node, program in programs.items()})


def attempt(system: str, frames: int, seed: int) -> ForeignTrafficResult:
    """Runs two rounds of the system. During the first round, the outsider sends `frames` frames."""
    run = _disturbed(system, frames, seed)
    same = recorded(system)
    others = [frame for name in names() if name != system for frame in recorded(name)]
    outsider = ForeignHost(
        chance=Random(f"foreign {system} {seed}"),
        own=end_of(run.graph.host(OUTSIDER), 40_000),
        ends=ends_of(same),
        others=others,
        same=same,
        attack=run.system.attack(f"{seed}", run, OUTSIDER),
    )
    measured = _measured(replace(run, system=cast(System, SystemUnderAttack(run.system, outsider))))
    outcome = measured.outcome
    counted = {
        kind: sum(packets for packets, _ in cells.values())
        for kind, cells in measured.counters["s1"].items()
    }
    return ForeignTrafficResult(
        outcome.attacked, counted, tuple(_troubles(run, frames, measured, counted))
    )


def _disturbed(system: str, frames: int, seed: int) -> ResolvedScenario:
    return resolved(system, frames * ELEMENTS_PER_FRAME, seed, frames)


def _measured(run: ResolvedScenario) -> Measurements:
    with tempfile.TemporaryDirectory(prefix="agglab-foreign-") as name:
        folder = Path(name)
        results = RunFolder(folder / "results")
        return Experiment(run, prepare(run), results, folder / "run", io.StringIO()).measure()


def _troubles(
    run: ResolvedScenario, frames: int, measured: Measurements, counted: Mapping[str, int]
) -> Iterator[str]:
    for result in measured.outcome.jobs:
        if result.failure:
            yield f"{result.job.name} failed: {result.failure.reason}"
        for number, verdict in result.judged:
            if not verdict.right:
                yield f"round {number}: first wrong {verdict.first}"
        if len(result.judged) != result.job.rounds:
            yield f"{len(result.judged)} of {result.job.rounds} rounds were judged"
    if (sent := sum(measured.outcome.attacked.values())) != frames:
        yield f"{sent} of {frames} foreign frames were sent"
    yield from imbalances(measured)
    taken = next(node.used for node in measured.statistics.nodes if node.name == "s1")
    again = sum(counted[kind] for kind in run.system.switch_work(run).passes_within)
    if (known := _arrivals(run)) and (
        total := sum(counted.get(k, 0) for k in known) - again
    ) != taken:
        yield f"s1 took {taken} frames and counted {total}"


def _arrivals(run: ResolvedScenario) -> tuple[str, ...]:
    """Returns the keys of counters, exactly one of which counts each frame. Some of them exist only
    in variants of the program. If switches only forward, these are all counters."""
    plain = run.programs["s1"].path.stem == SOURCE.name
    return run.system.switch_work(run).arrivals or (tuple(run.system.counters) if plain else ())
