"""Everything that can be seen of a run in virtual time, for any number of parts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, cast

from agglab.testbed.control.assembly import conductor
from agglab.testbed.scenario import Scenario, resolve
from agglab.testbed.scenario.schema import Workload
from agglab.testbed.series import latency, rows
from agglab.testbed.virtual import CompiledProgram, NeverEnds, VirtualBackend
from agglab.verification.explore.schedules import schedule
from agglab.verification.trial import LIMIT_NS, Silent

LANES, SLOTS = 4, 64
"""More slots than explore has: with few packets in flight, every round may end soon."""
SAMPLE_NS = 1_000_000
PROBES_NS = [n * 777_777 for n in range(1, 20)]


class Told(Silent):
    """The event log of a run, as a list."""

    def __init__(self, backend: VirtualBackend) -> None:
        self._backend = backend
        self.lines: list[str] = []

    def add(self, event: str, **fields: Any) -> None:
        self._note(event, fields)

    def event(self, event: Any) -> None:
        self._note("agent", event)

    def _note(self, what: str, content: Any) -> None:
        self.lines.append(f"{self._backend.now_ns()} {what} {json.dumps(content, default=str)}")


class Probes:
    """The statistics of a network at a few moments, read by actions of Python."""

    def __init__(self, backend: VirtualBackend) -> None:
        self.found: list[str] = []
        for time_ns in PROBES_NS:
            backend.clock.at(time_ns, lambda _: self.found.append(repr(backend.statistics())), None)


@dataclass(frozen=True)
class Seen:
    """What a run came to. Two runs are alike if their `results` are. actions: how many there were.
    windows: how many windows there were, and actions in them."""

    results: tuple[object, ...]
    actions: int
    windows: tuple[int, int]


def run(scenario: Scenario, compiled: CompiledProgram, parts: int) -> Seen:
    """Runs a scenario, in windows wherever they are possible. Raises MustRepeat."""
    resolved = resolve(scenario)
    graph, programs = resolved.graph, {each.name: compiled for each in resolved.graph.switches}
    settings: dict[str, Any] = {"limit_ns": LIMIT_NS, "sample_ns": SAMPLE_NS, "parts": parts}
    with VirtualBackend(graph, resolved.seed, programs, **settings) as backend:
        clock = backend.clock
        clock.library.clock_always_in_windows(clock.address)
        told, probes = Told(backend), Probes(backend)
        try:
            log = cast(Any, told)
            outcome = conductor(resolved, backend, log, log).run()
            ended = repr([(job.failure, job.judged) for job in outcome.jobs])
        except NeverEnds as error:
            ended = str(error)
        record = backend.record()
        names = {job.number: job.name for job in resolved.jobs}
        results = (
            ended,
            told.lines,
            repr(backend.statistics()),
            probes.found,
            list(rows.lines(rows.table(record, graph, names, 0))),
            list(latency.lines(record.latencies, names)),
            clock.happened,
        )
        return Seen(results, clock.happened, clock.windows)


def drawn(seed: int, system: str, lanes: int = LANES) -> Scenario:
    """Returns one of explore's scenarios, with more packets in flight."""
    small, times = schedule(seed, system), 8 * lanes // LANES
    jobs = tuple(replace(job, workload=_larger(job.workload, times)) for job in small.jobs)
    switch = replace(small.switch, lanes=lanes, slots=SLOTS)
    return replace(small, workload=_larger(small.workload, times), jobs=jobs, switch=switch)


def _larger(workload: Workload, times: int) -> Workload:
    window = None if workload.window is None else 4 * workload.window
    return replace(workload, elements=times * workload.elements, window=window)
