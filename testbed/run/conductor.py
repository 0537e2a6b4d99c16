"""Conducts one run: all jobs and faults of a scenario on a backend, real or virtual."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

from agglab.testbed.run.agent_group import AgentGroup
from agglab.testbed.run.backend import Backend
from agglab.testbed.run.controller_runner import ControllerRunner
from agglab.testbed.run.fault import FaultProcess
from agglab.testbed.run.history import FaultHistory, FaultState
from agglab.testbed.run.job import JobProcess
from agglab.testbed.run.journal import Journal
from agglab.testbed.run.outcome import Outcome
from agglab.testbed.run.roster import Roster
from agglab.testbed.run.rounds import Meter
from agglab.testbed.run.scheduler import RunClock, Scheduler
from agglab.testbed.run.turns import exhaust
from agglab.testbed.run.verifier import Verifier
from agglab.testbed.schema.faults import Fault
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import ActiveJob

IDLE_NS = 100_000_000
"""The longest time to wait for events before progress is drawn again."""


class Conductor:
    """Waits for the backend's events and lets jobs, controllers and faults react to them. groups,
    controls: the agents and the controllers of the jobs, by the job's number. fault_process:
    returns what runs a fault. assembly.py creates all parts."""

    def __init__(
        self,
        backend: Backend,
        clock: RunClock,
        scheduler: Scheduler,
        journal: Journal,
        roster: Roster,
        groups: Mapping[int, AgentGroup],
        jobs: Sequence[JobProcess],
        controls: Mapping[int, ControllerRunner],
        fault_process: Callable[[FaultState], FaultProcess],
        history: FaultHistory,
        meter: Meter,
        verifier: Verifier,
    ) -> None:
        self._backend, self._clock, self._scheduler = backend, clock, scheduler
        self._journal, self._roster, self._crews = journal, roster, groups
        self._jobs, self._controls, self._fault_process = jobs, controls, fault_process
        self._moves = self._conducted()
        self._history, self._meter, self._verifier = history, meter, verifier

    def run(self) -> Outcome:
        """Runs until every job has ended, and returns the outcome. Raises what the backend raises
        when it cannot continue."""
        return exhaust(self.turns())

    def turns(self) -> Generator[None, None, Outcome]:
        """Does the same as `run`, but as a generator, so that several runs on separate backends can
        take turns.

        It yields first when all agents are ready, before the scenario's times begin to count. If
        the run may rest (turns.py), it also yields before each further round. At a yield no round
        is in progress, and nothing is due until the next turn.
        """
        while (rests := self.move()) is not None:
            if rests:
                yield
        return self._outcome()

    def move(self) -> bool | None:
        """Goes on to the next point at which the run can be left alone for a while. Returns True if
        a round is about to begin, as at a turn; False if the run waits for events; and None if all
        jobs have ended."""
        return next(self._moves, None)

    @property
    def faults(self) -> list[Fault]:
        """All faults of the run so far, by number."""
        return [state.fault for state in self._history.states]

    def active(self, job: Job) -> ActiveJob:
        """Returns a job with its current members and share."""
        return self._roster.active(job)

    def begin(self, fault: Fault) -> None:
        """Begins a fault that the scenario does not have. Its number must be new."""
        state = FaultState(fault)
        self._history.states.append(state)
        self._scheduler.add(fault.number, self._fault_process(state).steps())
        self._scheduler.deliver()

    def lift(self, fault: int) -> None:
        """Ends a fault that has no duration, by its number."""
        self._history.states[fault].is_lifted = True
        self._scheduler.wake(fault)
        self._scheduler.deliver()

    def _conducted(self) -> Generator[bool, None, None]:
        """Conducts the run, and yields what `move` returns."""
        self._roster.fill_switches()
        # Faults first: what is due at the same time as a round's start comes before it.
        for state in self._history.states:
            self._scheduler.add(state.fault.number, self._fault_process(state).steps())
        for number, control in self._controls.items():
            self._scheduler.add(control, control.steps(), number)
        for job in self._jobs:
            self._scheduler.add(job, job.steps(), job.job.number)
        while any(self._scheduler.runs(job) for job in self._jobs):
            if self._all_prepared():
                yield True
                self._start_the_clock()
            self._scheduler.deliver()
            for job in self._jobs:
                if job.resting:
                    yield True
                    job.resting = False
                    self._scheduler.wake(job)
                    self._scheduler.deliver()
            yield False
            self._wait()

    def _all_prepared(self) -> bool:
        """Returns whether the scenario's times have not begun to count yet, and the agents of each
        job are ready or have failed to become ready."""
        return self._clock.start_ns is None and all(
            job.prepared or not self._scheduler.runs(job) for job in self._jobs
        )

    def _start_the_clock(self) -> None:
        self._clock.start_ns = self._clock.now_ns()
        self._journal.tell("started", at_ns=self._clock.start_ns)

    def _wait(self) -> None:
        """Waits for the next event or deadline."""
        until_ns = min(self._scheduler.until_ns, self._clock.now_ns() + IDLE_NS)
        for event in self._backend.wait(until_ns):
            self._crews[event["job"]].note(event)
            self._journal.heard(event)
            self._scheduler.deliver()
        self._scheduler.expire()
        self._journal.draw(self._backend.progress)

    def _outcome(self) -> Outcome:
        self._meter.finish()
        self._verifier.finish()
        outcome = Outcome([job.result for job in self._jobs])
        outcome.start_ns = self._clock.start_ns or 0
        outcome.usage, outcome.spans = self._meter.usage, self._meter.spans
        self._history.put_into(outcome)
        return outcome
