"""Runs one fault of a scenario from its trigger to its end, as a process of the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from agglab.testbed.base.worker_id import Event, WorkerId
from agglab.testbed.run.backend import Backend
from agglab.testbed.run.history import FaultState, concerns
from agglab.testbed.run.roster import Roster
from agglab.testbed.run.scheduler import FOREVER_NS, Process, RunClock, S
from agglab.testbed.run.table_writer import TableWriter
from agglab.testbed.schema.faults import (
    Action,
    AgentCrash,
    AgentFault,
    AgentPause,
    AgentSlow,
    AtChunk,
    AtOnce,
    Attack,
    AtTime,
    Fault,
    Impair,
    LinkDown,
    RateChange,
    SwitchReprogram,
    SwitchRestart,
)

ATTACK_STEP_NS = 5_000_000

FramesOf = Callable[[Fault], Iterator[tuple[str, bytes]]]
"""A function that returns the endless sequence of what an attack sends, as pairs of kind and
frame."""


class FaultProcess:
    """Runs one fault of a scenario and records its progress in a FaultState. tell: a function that
    is called with an event whenever something happens that a job may need to know."""

    def __init__(
        self,
        state: FaultState,
        backend: Backend,
        clock: RunClock,
        table_writer: TableWriter,
        roster: Roster,
        frames: FramesOf,
        tell: Callable[..., None],
    ) -> None:
        self._state, self._fault = state, state.fault
        self._backend, self._clock = backend, clock
        self._table_writer, self._roster = table_writer, roster
        self._frames, self._tell = frames, tell

    def steps(self) -> Process[None]:
        """Waits for the fault's trigger, begins the fault, and ends it."""
        state = self._state
        yield from self._until_trigger()
        state.began_ns = self._clock.now_ns()
        action = self._fault.action
        told = {"number": self._fault.number, "fault": self._fault.kind, "target": action.target}
        self._tell("fault", **told)
        yield from self.STEPS[type(action)](self, action, state.began_ns)
        state.ended_ns = self._clock.now_ns()
        self._tell("fault_end", **told)

    def _until_trigger(self) -> Process[None]:
        trigger = self._fault.trigger
        if isinstance(trigger, AtOnce):
            return
        start_ns = yield from self._clock.start()
        if isinstance(trigger, AtTime):
            yield from self._clock.sleep_until(start_ns + round(trigger.seconds * S))
            return
        while True:
            event = yield FOREVER_NS
            if event and reached(event, trigger):
                return

    def _last(self, began_ns: int) -> Process[None]:
        """Waits until the fault has lasted as long as it should. A fault without a duration lasts
        until it is lifted."""
        if self._fault.duration_s is None:
            while not self._state.is_lifted:
                yield FOREVER_NS
            return
        yield from self._clock.sleep_until(began_ns + round(self._fault.duration_s * S))

    def _restart(self, action: SwitchRestart, began_ns: int) -> Process[None]:
        self._backend.stop_switch(action.switch)
        self._table_writer.stopped(action.switch)
        yield from self._clock.sleep_until(began_ns + round(action.outage_s * S))
        self._backend.start_switch(action.switch)
        self._write_emptied(action.switch)

    def _reprogram(self, action: SwitchReprogram, began_ns: int) -> Process[None]:
        self._backend.reprogram_switch(action.switch)
        self._write_emptied(action.switch)
        yield from ()

    def _take_link_down(self, action: LinkDown, began_ns: int) -> Process[None]:
        self._backend.set_link_down(self._fault.number, action.link, True)
        yield from self._last(began_ns)
        self._backend.set_link_down(self._fault.number, action.link, False)

    def _change_rate(self, action: RateChange, began_ns: int) -> Process[None]:
        self._backend.set_rate(self._fault.number, action.directions, action.rate_bps)
        yield from self._last(began_ns)
        self._backend.set_rate(self._fault.number, action.directions, None)

    def _impair(self, action: Impair, began_ns: int) -> Process[None]:
        what = self._fault.number, action.link, action.directions, action.impairment
        self._backend.set_impairment(*what, True)
        yield from self._last(began_ns)
        self._backend.set_impairment(*what, False)

    def _write_emptied(self, switch: str) -> None:
        self._table_writer.write_again(switch)
        self._tell("switch_emptied", switch=switch)

    def _attack(self, action: Attack, began_ns: int) -> Process[None]:
        """Sends the frames of an attack. Every few milliseconds, it sends all frames that are due
        and not yet sent."""
        frames, sent = self._frames(self._fault), 0
        while sent < action.frames:
            yield from self._clock.sleep_until(self._clock.now_ns() + ATTACK_STEP_NS)
            elapsed_s = (self._clock.now_ns() - began_ns) / S
            due = min(action.frames, int(action.frames * elapsed_s / action.over_s))
            batch = list(islice(frames, due - sent))
            self._backend.inject(action.host, [frame for _, frame in batch])
            self._state.sent.update(kind for kind, _ in batch)
            sent = max(sent, due)

    def _pause(self, action: AgentPause, began_ns: int) -> Process[None]:
        agents = self._agents(action)
        for agent in agents:
            self._backend.pause_worker(agent, True)
        yield from self._last(began_ns)
        for agent in agents:
            self._backend.pause_worker(agent, False)

    def _slow(self, action: AgentSlow, began_ns: int) -> Process[None]:
        agents = self._agents(action)
        self._delay(agents, action.delay_s)
        yield from self._last(began_ns)
        self._delay(agents, 0.0)

    def _crash(self, action: AgentCrash, began_ns: int) -> Process[None]:
        agents = self._agents(action)
        yield from self._kill(agents)
        yield from self._last(began_ns)
        for agent in agents:
            self._backend.start_worker(agent, self._roster.configuration(agent))

    def _agents(self, action: AgentFault) -> list[WorkerId]:
        return [agent for agent in self._roster.everybody(action.job) if concerns(action, agent)]

    def _delay(self, agents: Sequence[WorkerId], delay_s: float) -> None:
        for agent in agents:
            self._backend.command(agent, {"command": "slow", "delay_s": delay_s})

    def _kill(self, agents: Sequence[WorkerId]) -> Process[None]:
        """Kills the agents and waits until all have ended."""
        for agent in agents:
            self._backend.kill_worker(agent)
        alive = set(agents)
        while alive:
            event = yield FOREVER_NS
            if event and event["event"] == "ended":
                alive.discard(WorkerId.of(event))

    STEPS: ClassVar[Mapping[type[Action], Callable[[FaultProcess, Any, int], Process[None]]]] = {
        AgentPause: _pause,
        AgentSlow: _slow,
        AgentCrash: _crash,
        SwitchRestart: _restart,
        SwitchReprogram: _reprogram,
        Attack: _attack,
        LinkDown: _take_link_down,
        RateChange: _change_rate,
        Impair: _impair,
    }
    """The method that does each kind of action. Its parameters are the action and the time, in
    nanoseconds, at which the fault began."""


def reached(event: Event, trigger: AtChunk) -> bool:
    """Returns whether an event says that this moment has come."""
    return (
        event["event"] == "chunk"
        and event["job"] == trigger.job
        and event["round"] == trigger.round
        and event["chunk"] > trigger.chunk
    )
