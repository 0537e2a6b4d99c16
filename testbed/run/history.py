"""Records what has happened to a run's faults so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.run.outcome import Outcome
from agglab.testbed.run.scheduler import RunClock
from agglab.testbed.schema.faults import (
    AgentCrash,
    AgentFault,
    AtChunk,
    AtOnce,
    Attack,
    AtTime,
    Fault,
)
from agglab.testbed.schema.jobs import Job

FAULTS_SHOWN = 5
"""The largest number of faults in one line about a failure."""


def concerns(action: AgentFault, agent: WorkerId) -> bool:
    """Returns whether the fault's action affects this agent. An action affects all agents of one
    role that a job has on a host."""
    return (action.job, action.host, action.role) == (agent.job, agent.host, agent.role)


@dataclass
class FaultState:
    """The state of one fault. began_ns: when it began; None if it has not begun. ended_ns: when
    everything was restored, including programs that it restarts. is_lifted: whether somebody has
    asked for its end. sent: how many frames an attack has sent, by kind."""

    fault: Fault
    began_ns: int | None = None
    ended_ns: int | None = None
    is_lifted: bool = False
    sent: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """Returns a text such as `link_down h1-s1 at 2 s`."""
        trigger = self.fault.trigger
        if isinstance(trigger, AtTime):
            return f"{self.fault.kind} {self.target} at {trigger.seconds:g} s"
        if isinstance(trigger, AtOnce):
            return f"{self.fault.kind} {self.target}"
        return f"{self.fault.kind} {self.target} at chunk {trigger.chunk} of round {trigger.round}"

    @property
    def target(self) -> str:
        """The link, host or switch that has the fault."""
        return self.fault.action.target


class FaultHistory:
    """All faults of a run. It tells jobs what they may know about the faults, and writes them into
    the outcome. pause: a moment that has to be noticed although no fault begins."""

    def __init__(
        self, states: Sequence[FaultState], clock: RunClock, pause: AtChunk | None = None
    ) -> None:
        self.states, self._clock, self._pause = list(states), clock, pause

    def marks(self, job: Job, number: int) -> list[int]:
        """Returns the counts of chunks, in this round of the job, at which faults begin or which
        have to be noticed."""
        triggers = [state.fault.trigger for state in self.states if state.began_ns is None]
        return [
            trigger.chunk + 1
            for trigger in (*triggers, self._pause)
            if isinstance(trigger, AtChunk) and (trigger.job, trigger.round) == (job.number, number)
        ]

    def comes_back(self, agent: WorkerId, died_ns: int) -> bool | None:
        """Returns whether a fault restarts an agent that died at this time, or has already
        restarted it. Returns None if no fault killed the agent."""
        for state in self._crashes(agent):
            if state.ended_ns is None:
                return state.fault.duration_s is not None
            if state.ended_ns >= died_ns:
                return True
        return None

    def keeps_out(self, agent: WorkerId) -> bool:
        """Returns whether a fault that has begun will still restart the agent."""
        return any(state.ended_ns is None for state in self._crashes(agent))

    def _crashes(self, agent: WorkerId) -> Iterator[FaultState]:
        """Yields the faults that have killed the agent."""
        for state in self.states:
            action = state.fault.action
            crashed = isinstance(action, AgentCrash) and concerns(action, agent)
            if crashed and state.began_ns is not None:
                yield state

    def since_s(self, otherwise_ns: int) -> float:
        """Returns the seconds since the last fault began. If no fault has begun, returns the
        seconds since `otherwise_ns`."""
        begun = [state.began_ns for state in self.states if state.began_ns is not None]
        return (self._clock.now_ns() - max(begun, default=otherwise_ns)) / 1e9

    def so_far(self) -> str:
        """Returns the faults that have begun, as text such as ` (faults: link_down h1-s1 2 s after
        the start)`; empty if there are none. Of many faults, it has the first ones and counts the
        others."""
        start_ns = self._clock.start_ns or 0
        begun = [
            f"{s.fault.kind} {s.target} {(s.began_ns - start_ns) / 1e9:.3g} s after the start"
            for s in self.states
            if s.began_ns is not None
        ]
        shown = list(dict.fromkeys(begun))
        if len(shown) > FAULTS_SHOWN + 1:
            shown[FAULTS_SHOWN:] = [f"and {len(shown) - FAULTS_SHOWN} more"]
        return f" (faults: {', '.join(shown)})" if shown else ""

    def put_into(self, outcome: Outcome) -> None:
        """Writes into the outcome which faults began, which never did, and what attacks sent."""
        never = (str(state) for state in self.states if state.began_ns is None)
        outcome.never_begun = list(dict.fromkeys(never))  # one of a host, not of each job
        outcome.begun = [state.fault for state in self.states if state.began_ns is not None]
        sent = sum((state.sent for state in self.states), Counter[str]())
        outcome.attacked = dict(sorted(sent.items()))
        for state in self.states:
            if isinstance(state.fault.action, Attack):
                count = outcome.injected.get(state.target, 0) + state.sent.total()
                outcome.injected[state.target] = count
