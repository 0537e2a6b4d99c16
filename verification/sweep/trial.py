"""Runs one point of a sweep in this process, in virtual time, with many seeds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agglab.testbed.run.programs.prepare import compile_points
from agglab.testbed.scenario import load, resolve
from agglab.verification.sweep.points import Point
from agglab.verification.trial import Trial, attempt

SCENARIO = "name: sweep\n"


@dataclass(frozen=True)
class Red:
    """Something that was wrong in a run. kind, text: those of a Finding (judgement.py)."""

    seed: int
    kind: str
    text: str


@dataclass(frozen=True)
class Outcomes:
    """What the runs of a point came to. time_s: the medians of rounds' times, by seed."""

    reds: tuple[Red, ...]
    time_s: tuple[float | None, ...]


class Subject:
    """A point whose programs are compiled."""

    def __init__(self, point: Point) -> None:
        """Raises ScenarioError or CompileError."""
        with tempfile.TemporaryDirectory(prefix="agglab-sweep-") as name:
            file = Path(name) / "sweep.yaml"
            file.write_text(SCENARIO)
            suite = load(file, point.settings)
        self._scenario = suite.points[0].resolved.scenario
        self._prepared = compile_points(suite.points)[0]

    def outcomes(self, seeds: Sequence[int]) -> Outcomes:
        """Runs the point with each of these seeds."""
        trials = {seed: self._try(seed) for seed in seeds}
        reds = (Red(seed, f.kind, f.text) for seed, trial in trials.items() for f in trial.findings)
        return Outcomes(tuple(reds), tuple(trial.time_s for trial in trials.values()))

    def _try(self, seed: int) -> Trial:
        return attempt(resolve(replace(self._scenario, seed=seed)), self._prepared)
