"""Creates the parts of a run and connects them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agglab.testbed.run.agent_group import AgentGroup
from agglab.testbed.run.backend import Backend
from agglab.testbed.run.conductor import Conductor
from agglab.testbed.run.controller_runner import ControllerRunner
from agglab.testbed.run.fault import FaultProcess
from agglab.testbed.run.history import FaultHistory, FaultState
from agglab.testbed.run.job import JobProcess
from agglab.testbed.run.journal import Journal
from agglab.testbed.run.outcome import JobResult
from agglab.testbed.run.programs.user_entries import Fill, as_planned
from agglab.testbed.run.progress import Progress
from agglab.testbed.run.recovery import Recovery, WaitingOf
from agglab.testbed.run.result_folder import EventLog
from agglab.testbed.run.roster import Roster
from agglab.testbed.run.rounds import Meter, Rounds
from agglab.testbed.run.scheduler import RunClock, Scheduler
from agglab.testbed.run.session import JobSession
from agglab.testbed.run.table_writer import TableWriter
from agglab.testbed.run.turns import may_rest
from agglab.testbed.run.verifier import Verifier, has_time
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.scenario.workloads import KINDS, reductions
from agglab.testbed.schema.faults import AtChunk, Attack, Fault
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ActiveJob, MissingChunks

ROUND_S, LINK_BOUNDS = 60.0, 20.0


def conductor(
    resolved: ResolvedScenario,
    backend: Backend,
    log: EventLog,
    progress: Progress,
    fill: Fill = as_planned,
    by_hand: bool = False,
    pause: AtChunk | None = None,
) -> Conductor:
    """Returns a new Conductor for one run of a scenario. fill: a function that adds the user's own
    entries to the planned ones. by_hand: whether all jobs rest before each round; otherwise those
    do that may (turns.py). pause: a moment at which there has to be an event."""
    system, jobs, faults = resolved.system, resolved.jobs, resolved.faults
    has_controller = system.abilities.has_controller
    timeouts = resolved.scenario.timeouts
    clock = RunClock(backend.now_ns)
    scheduler = Scheduler(backend.now_ns)
    chunks = {job.number: resolved.chunks(job) for job in jobs}
    journal = Journal(log, progress, chunks, scheduler.post)
    table_writer = TableWriter(backend, system, resolved.graph, fill)
    roster = Roster(resolved, table_writer, journal.tell)
    at_once = has_time(resolved.virtual, jobs, faults)
    verifier = Verifier(backend, resolved, journal.note, at_once)
    meter = Meter(backend)
    rounds = Rounds(backend, meter, journal, verifier)
    history = FaultHistory([FaultState(fault) for fault in faults], clock, pause)

    def frames(fault: Fault) -> Iterator[tuple[str, bytes]]:
        assert isinstance(fault.action, Attack)
        key = f"{resolved.seed}/attack/{fault.number}"
        return system.attack(key, resolved, fault.action.host)

    def diagnose(
        active: ActiveJob, waiting: WaitingOf, unserved: WaitingOf
    ) -> Mapping[str, MissingChunks]:
        return system.diagnose(backend, resolved.graph, active, waiting, unserved)

    def round_s(active: ActiveJob) -> float:
        if timeouts.round_s:
            return timeouts.round_s
        # A limit need not be exact. All rounds would be too many: this is asked in each of them.
        bounds = reductions.bounds_of_first(resolved, active, 1)
        usual = ROUND_S + active.job.give_up_s + (LINK_BOUNDS * bounds.link_s if bounds else 0.0)
        return max(usual, KINDS[active.job.work.kind].round_s)

    controls: dict[int, ControllerRunner] = {}

    def controlling(result: JobResult) -> ControllerRunner | None:
        job = result.job
        made = system.controller(resolved, resolved.whole(job)) if has_controller else None
        if made is None:
            return None
        control = ControllerRunner(result, made, backend, clock, roster, table_writer, journal.tell)
        controls[job.number] = control
        return control

    def process(job: Job) -> tuple[AgentGroup, JobProcess]:
        result = JobResult(job)
        group = AgentGroup(result, backend, clock, roster, timeouts.start_s)
        session = JobSession(group, roster)
        recovery = Recovery(result, group, session, clock, roster, rounds, history, diagnose)
        parts = (group, session, recovery, clock, roster, rounds, history, round_s)
        controls = controlling(result)
        # A controller has deadlines of its own.
        rests = by_hand or (controls is None and may_rest(jobs, faults))
        return group, JobProcess(result, *parts, rests, controls)

    def fault_process(state: FaultState) -> FaultProcess:
        return FaultProcess(state, backend, clock, table_writer, roster, frames, journal.tell)

    made = {job.number: process(job) for job in jobs}
    return Conductor(
        backend,
        clock,
        scheduler,
        journal,
        roster,
        {number: group for number, (group, _) in made.items()},
        [job for _, job in made.values()],
        controls,
        fault_process,
        history,
        meter,
        verifier,
    )
