"""One fault from its trigger to its end, as a generator like a job's (job.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import islice
from typing import Any, Protocol

from agglab.hosts.part import WORKER
from agglab.testbed.backend import Backend, Event, WorkerId
from agglab.testbed.control.job import FOREVER_NS, Process, S
from agglab.testbed.faults import (
    AtChunk,
    Attack,
    AtTime,
    Fault,
    Impair,
    LinkDown,
    RateChange,
    SwitchReprogram,
    SwitchRestart,
    WorkerCrash,
    WorkerPause,
    WorkerSlow,
)

NAMES = {
    LinkDown: "link_down",
    RateChange: "rate",
    WorkerPause: "worker_pause",
    WorkerCrash: "worker_crash",
    WorkerSlow: "worker_slow",
    SwitchRestart: "switch_restart",
    SwitchReprogram: "switch_reprogram",
    Attack: "attack",
}
ATTACK_STEP_NS = 5_000_000


class Run(Protocol):
    """What a fault needs of the run around it."""

    backend: Backend

    def start_again(self, worker: WorkerId) -> None: ...

    def fill(self, switch: str) -> None:
        """Install the entries of an empty switch, and tell the jobs that it was emptied."""

    def foreign_frames(self, fault: Fault) -> Iterator[tuple[str, bytes]]:
        """What an Attack sends, without end: kinds and frames."""

    def tell(self, event: str, **content: Any) -> None:
        """Record an event and let every job know."""


class FaultProcess:
    """The state of one fault, and the generator `steps` that moves it. sent: an attack's frames, by
    kind."""

    def __init__(self, fault: Fault, run: Run) -> None:
        self.fault = fault
        self.began_ns: int | None = None
        self.ended = False
        self.sent: Counter[str] = Counter()
        self._run = run

    def __str__(self) -> str:
        """`link_down h1-s1 at 2 s`."""
        trigger = self.fault.trigger
        if isinstance(trigger, AtTime):
            return f"{self.name} {self.target} at {trigger.seconds:g} s"
        return f"{self.name} {self.target} at chunk {trigger.chunk} of round {trigger.round}"

    @property
    def target(self) -> str:
        """The link, host or switch."""
        where = {
            item.name: getattr(self.fault.action, item.name) for item in fields(self.fault.action)
        }
        return str(next(where[name] for name in ("link", "host", "switch") if name in where))

    @property
    def name(self) -> str:
        action = self.fault.action
        kind = action.impairment if isinstance(action, Impair) else action
        return NAMES.get(type(kind), type(kind).__name__.lower())

    def steps(self, origin: Mapping[str, int]) -> Process[None]:
        """From the start of the run to the end of the fault."""
        yield from self._until_trigger(origin)
        self.began_ns = self._run.backend.now_ns()
        self._run.tell("fault", number=self.fault.number, fault=self.name, target=self.target)
        yield from self._happen()
        self.ended = True
        self._run.tell("fault_end", number=self.fault.number, fault=self.name, target=self.target)

    def _until_trigger(self, origin: Mapping[str, int]) -> Process[None]:
        trigger = self.fault.trigger
        while "start_ns" not in origin:
            yield FOREVER_NS
        if isinstance(trigger, AtTime):
            yield from self._sleep_until(origin["start_ns"] + round(trigger.seconds * S))
            return
        while True:
            event = yield FOREVER_NS
            if event and _reached(event, trigger):
                return

    def _sleep_until(self, at_ns: int) -> Process[None]:
        while self._run.backend.now_ns() < at_ns:
            yield at_ns

    def _last(self) -> Process[None]:
        """For as long as the fault does; for ever if nothing else is said."""
        assert self.began_ns is not None
        if self.fault.duration_s is None:
            while True:
                yield FOREVER_NS
        yield from self._sleep_until(self.began_ns + round(self.fault.duration_s * S))

    def _happen(self) -> Process[None]:
        action, backend = self.fault.action, self._run.backend
        if isinstance(action, WorkerPause | WorkerCrash | WorkerSlow):
            yield from self._to_worker(WorkerId(action.job, action.host))
        elif isinstance(action, SwitchRestart):
            backend.stop_switch(action.switch)
            yield from self._sleep_until((self.began_ns or 0) + round(action.outage_s * S))
            backend.start_switch(action.switch)
            self._run.fill(action.switch)
        elif isinstance(action, SwitchReprogram):
            backend.reprogram_switch(action.switch)
            self._run.fill(action.switch)
        elif isinstance(action, Attack):
            yield from self._attack(action)
        else:
            backend.begin(self.fault)
            yield from self._last()
            backend.end(self.fault)

    def _attack(self, action: Attack) -> Process[None]:
        """As many as are due by now, every few milliseconds."""
        assert self.began_ns is not None
        frames, sent = self._run.foreign_frames(self.fault), 0
        while sent < action.frames:
            yield from self._sleep_until(self._run.backend.now_ns() + ATTACK_STEP_NS)
            elapsed_s = (self._run.backend.now_ns() - self.began_ns) / S
            due = min(action.frames, int(action.frames * elapsed_s / action.over_s))
            batch = list(islice(frames, due - sent))
            self._run.backend.inject(action.host, [frame for _, frame in batch])
            self.sent.update(kind for kind, _ in batch)
            sent = max(sent, due)

    def _to_worker(self, worker: WorkerId) -> Process[None]:
        action, backend = self.fault.action, self._run.backend
        if isinstance(action, WorkerPause):
            backend.pause_worker(worker, True)
            yield from self._last()
            backend.pause_worker(worker, False)
        elif isinstance(action, WorkerSlow):
            backend.command(worker, {"command": "slow", "delay_s": action.delay_s})
            yield from self._last()
            backend.command(worker, {"command": "slow", "delay_s": 0.0})
        else:
            backend.kill_worker(worker)
            while not _is_end_of((yield FOREVER_NS), worker):
                pass
            yield from self._last()
            self._run.start_again(worker)


def _reached(event: Event, trigger: AtChunk) -> bool:
    return (
        event["event"] == "chunk"
        and event["job"] == trigger.job
        and event["round"] == trigger.round
        and event["chunk"] > trigger.chunk
    )


def _is_end_of(event: Event | None, worker: WorkerId) -> bool:
    if event is None or event["event"] != "ended":
        return False
    return WorkerId(event["job"], event["name"], event.get("role", WORKER)) == worker
