"""Runs one point of a sweep in this process, in virtual time, and judges it as `agglab run`
does."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from agglab.testbed.control.assembly import conductor
from agglab.testbed.control.outcome import Outcome
from agglab.testbed.experiment import counters_of
from agglab.testbed.measurements import Measurements
from agglab.testbed.metrics import compute
from agglab.testbed.prepare import Prepared, compile_points
from agglab.testbed.program import register_bits
from agglab.testbed.scenario import ResolvedScenario, load, resolve
from agglab.testbed.virtual import CompiledProgram, NeverEnds, VirtualBackend, built
from agglab.verification.explore.trial import Silent
from agglab.verification.explore.walk import place
from agglab.verification.sweep.points import Point

LIMIT_NS = 1_000 * 1_000_000_000
SCENARIO = "name: sweep\n"


@dataclass(frozen=True)
class Red:
    """Something that a run reported. kind: that of a finding, or wrong, failure, hang, links (they
    did not carry the predicted bytes) or error."""

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
        self._resolved = suite.points[0].resolved
        self._prepared: Prepared = compile_points(suite.points)[0]
        jsons = {switch: program.json for switch, program in self._prepared.programs.items()}
        self._built: Mapping[str, CompiledProgram] = built(jsons)
        self._bits = {s: register_bits(program) for s, program in self._prepared.programs.items()}

    def outcomes(self, seeds: Sequence[int]) -> Outcomes:
        """Runs the point with each of these seeds."""
        reds, times = list[Red](), list[float | None]()
        for seed in seeds:
            found, time_s = self._run(seed)
            reds += found
            times.append(time_s)
        return Outcomes(tuple(reds), tuple(times))

    def _run(self, seed: int) -> tuple[list[Red], float | None]:
        resolved = resolve(replace(self._resolved.scenario, seed=seed))
        try:
            measured = self._measure(resolved)
            metrics = compute(resolved, measured)
        except NeverEnds as error:
            return [Red(seed, "hang", str(error))], None
        except Exception as error:  # whatever it is, it must not be
            text = f"{type(error).__name__}: {error} ({place(error)})"
            return [Red(seed, "error", text)], None
        medians = (job["allreduce"]["time_s"]["median"] for job in metrics["jobs"].values())
        reds = [Red(seed, *red) for red in _reds(measured.outcome, metrics)]
        return reds, next(medians, None)

    def _measure(self, resolved: ResolvedScenario) -> Measurements:
        graph, silent = resolved.graph, cast(Any, Silent())
        with VirtualBackend(graph, resolved.seed, self._built, limit_ns=LIMIT_NS) as backend:
            run = conductor(resolved, backend, silent, silent, self._prepared.fill)
            outcome = run.run()
            counters = {
                switch.name: counters_of(resolved.system, backend, switch.name)
                for switch in graph.switches
            }
            return Measurements(outcome, backend.statistics(), counters, self._bits, 1)


def _reds(outcome: Outcome, metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields (kind, text) of everything that makes `agglab run` fail without expectations."""
    for result in outcome.jobs:
        if result.failure:
            yield "failure", result.failure.reason
    if metrics["wrong_sums"] or metrics["wrong_results"]:
        yield "wrong", str(metrics["first_wrong"])
    if metrics["links_as_predicted"] is False:
        ways = [way for link in metrics["links"].values() for way in link.items()]
        found = [f"{name} {w['bytes']} (predicted {w['predicted_bytes']})" for name, w in ways]
        yield "links", f"bytes: {', '.join(found)}"
    for finding in metrics["findings"]:
        yield finding["kind"], finding["text"]
