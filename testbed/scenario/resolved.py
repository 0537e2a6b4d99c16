"""One run of a scenario, with nothing left to choose: what the rest of the testbed works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agglab.testbed import systems, workloads
from agglab.testbed.faults import Fault
from agglab.testbed.paths import P4_FOLDER
from agglab.testbed.scenario import graph
from agglab.testbed.scenario.faults import expand
from agglab.testbed.scenario.jobs import Job, jobs_of
from agglab.testbed.scenario.schema import Scenario
from agglab.testbed.systems.base import ActiveJob, Choices, Share, Source, System
from agglab.testbed.workloads import asked
from agglab.topologies import Topology

SAMPLE_S = 0.010


@dataclass(frozen=True)
class P4Program:
    """path: the P4 source; parameters: those of compile time (-D)."""

    path: Path
    parameters: Mapping[str, int]


@dataclass(frozen=True)
class ResolvedScenario:
    """Made by `resolve` alone.

    scenario: every key with its value, as the results keep it. options: the system's own keys,
    an object of its class `options`; None if it has none. programs: of every switch. graph:
    with every direction's rate, delay, queue and constant impairments. faults: one for each
    target. lanes, window: 32-bit values in a packet, and the packets that a worker keeps in
    flight unless its job says otherwise; 0 where the system has no such number.
    """

    scenario: Scenario
    system: System
    options: Any
    programs: Mapping[str, P4Program]
    graph: Topology
    jobs: tuple[Job, ...]
    faults: tuple[Fault, ...]
    lanes: int
    window: int

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def seed(self) -> int:
        return self.scenario.seed

    @property
    def virtual(self) -> bool:
        """Whether it runs in virtual time, and so on no target."""
        return self.scenario.backend == "virtual"

    @property
    def target(self) -> str:
        return self.scenario.switch.target

    @property
    def sample_ns(self) -> int:
        """How far apart samples of metrics over time are; 0 where none are kept."""
        series = self.scenario.series
        assert series.every_s is not None, "resolve replaces auto"
        return round(series.every_s * 1e9) if series.record else 0

    @property
    def slots(self) -> int:
        """Of each switch, for all jobs."""
        return self.scenario.switch.slots

    def whole(self, job: Job, share: Share = None) -> ActiveJob:
        """The job with all its workers."""
        return ActiveJob(job, self.jobs.index(job), tuple(range(len(job.hosts))), share)

    def chunks(self, job: Job) -> int:
        """How many chunks a worker of the job has in a round."""
        return asked.chunks(self.system, self.scenario, job)


def resolve(
    scenario: Scenario, program: Path | None = None, bare: Topology | None = None
) -> ResolvedScenario:
    """A checked scenario with every `auto` replaced by what it stands for. program: the P4 source
    that takes the place of the system's own, if it is not that. bare: its network as `graph.bare`
    makes it, where that is known already."""
    system = systems.of(scenario)
    bare = bare or graph.bare(scenario.topology)
    slowest_bps = graph.slowest_bps(bare, scenario)
    choices = system.resolve(scenario, slowest_bps)
    jobs = tuple(
        replace(
            job,
            work=workloads.KINDS[job.work.kind].on_links(job.work, slowest_bps),
            window=own.window,
            first_slot=own.first_slot,
            slots=own.slots,
        )
        for job, own in zip(jobs_of(scenario, bare, system), choices.jobs, strict=True)
    )
    complete = _complete(scenario, system, choices, jobs)
    sources = system.sources(complete)
    programs = {
        role: P4Program(program or own_path(source), source.parameters)
        for role, source in sources.items()
    }
    return ResolvedScenario(
        scenario=complete,
        system=system,
        options=dict(complete.options).get(system.name),
        programs={each.name: programs[system.role(bare, each.name)] for each in bare.switches},
        graph=graph.with_links(bare, complete),
        jobs=jobs,
        faults=tuple(expand(complete, bare, jobs)),
        lanes=choices.lanes,
        window=choices.window,
    )


def own_path(source: Source) -> Path:
    """Where a system's own program lies: in p4/, or where its name says."""
    return Path(source.name) if "/" in source.name else P4_FOLDER / f"{source.name}.p4"


def _complete(
    scenario: Scenario, system: System, choices: Choices, jobs: tuple[Job, ...]
) -> Scenario:
    """The scenario with the system's choices in the keys that the system reads."""
    own = dict(scenario.options)
    if system.options and system.name not in own:
        own[system.name] = system.options()
    placed = scenario.switch.partition == "static"
    sections = []
    for section, job in zip(scenario.jobs, jobs, strict=False):
        sections.append(
            replace(
                section,
                name=job.name,
                slots=job.slots or None if placed else None,
                first_slot=job.first_slot if placed and job.slots else None,
                workload=replace(section.workload, window=job.window or None),
            )
        )
    return replace(
        scenario,
        topology=graph.resolved(scenario.topology),
        switch=replace(scenario.switch, lanes=choices.lanes or None),
        workload=replace(scenario.workload, window=choices.window or None),
        jobs=tuple(sections),
        options=tuple(own.items()),
        series=replace(scenario.series, every_s=scenario.series.every_s or SAMPLE_S),
    )
