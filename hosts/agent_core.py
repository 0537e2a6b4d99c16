"""The logic of an agent that is the same on a real and on a virtual clock: it carries out the
testbed's commands and reports events (docs/architecture.md, hosts.agent). A Driver has the socket
or the virtual time.

    core = AgentCore(config, driver, tell, now_ns)
    core.start()                    # opens the first session, says `ready`
    core.execute(command)              # may ask the driver for something
    core.after_batch()              # the driver, in a round: whenever datagrams were taken
    core.finish(...), core.fail(…)  # the driver: how the round has ended
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import histogram, recording
from agglab.hosts.agent_config import Config
from agglab.hosts.endpoint import PRESENCE, Endpoint
from agglab.hosts.errors import AllReduceError, ProgramFailed, RoundTimeout
from agglab.hosts.modules import load_module
from agglab.hosts.part import Part
from agglab.hosts.workloads import Torch

WAITING_MAX = 64

Command = Mapping[str, Any]
Event = dict[str, Any]


class Session(Protocol):
    """The interface of a session: an endpoint together with the object that carries its
    datagrams."""

    @property
    def endpoint(self) -> Endpoint: ...

    @property
    def stats(self) -> Mapping[str, int]:
        """The counts since the session was opened: the endpoint's counters, kernel_drops, unsent
        and network_errors."""

    def close(self) -> None: ...


class Driver(Protocol):
    """The interface of the object that runs an agent's rounds, on a real or on a virtual clock."""

    def open(self, system: ModuleType, part: Part) -> Session:
        """Returns a new session. The core has already closed the previous session."""

    def begin_round(self, number: int) -> None:
        """Runs round `number`, or starts it. When the round has ended, the driver calls `finish` or
        `fail` of the core."""

    def leave_round(self) -> None:
        """Stops running the current round."""

    def stop(self) -> None:
        """Ends the program."""


class AgentCore:
    """The logic that all agents have in common. tell: a function that is called with every event.
    now_ns: a function that returns the time of the driver's clock. All ranks are ranks in the whole
    job."""

    def __init__(
        self,
        config: Config,
        driver: Driver,
        tell: Callable[[Event], None],
        now_ns: Callable[[], int],
    ) -> None:
        self.system = load_module(config.system)
        self.round: int | None = None
        """The number of the round under way, or None."""
        self.broken_off = False
        """Whether a round of this session has ended without a result. The agent then answers nobody
        any more."""
        self.failed = False
        """Whether a round of any session has failed."""
        self.slow_s = 0.0
        """How long to wait after each batch of datagrams, in seconds."""
        self.marks: list[int] = []
        """The numbers of results, ascending, that the testbed wants to be told of. When the round
        has as many results as the first number says, a `chunk` event is sent and the number is
        removed."""
        self._config, self._driver = config, driver
        self._send, self._now_ns = tell, now_ns
        self._session: Session | None = None
        self._part: Part | None = None
        self.is_settling = False
        """Whether the testbed waits until nothing of this agent is in flight."""
        self._before: Mapping[str, int] = {}
        self._counted_before = [0] * len(recording.COUNTED)
        self._latencies_before = histogram.none()

    def start(self) -> None:
        """Opens the first session, of all workers, and reports `ready`. Raises the exceptions of
        the driver."""
        self._open(range(self._config.workers), {})
        self.tell("ready")

    @property
    def sums_integers(self) -> bool:
        """Whether the system converts floats to integers and sums these. The testbed then checks
        the integers too."""
        work = self._config.work
        has_floats = work.dtype == "float32" or isinstance(work, Torch)
        return has_floats and getattr(self.system, "QUANTISES", False)

    @property
    def presence(self) -> Mapping[str, NDArray]:
        """Who is in the sum of each chunk of the round (Worker.presence), by the name of that array
        for the testbed. It is empty if everybody is in each sum."""
        found = self.present
        return {} if found is None else {PRESENCE: found}

    @property
    def present(self) -> NDArray[np.uint64] | None:
        """Who is in the sum of each chunk of the last round (Worker.presence), or None if everybody
        is in each sum."""
        found: NDArray[np.uint64] | None = getattr(self.session.endpoint, "presence", None)
        return found

    @property
    def part(self) -> Part:
        """The agent's Part in the current session."""
        assert self._part is not None, "the core has been started"
        return self._part

    @property
    def session(self) -> Session:
        assert self._session is not None, "the core has been started"
        return self._session

    def execute(self, command: Command) -> None:
        """Carries out a command of the testbed. Raises AllReduceError for an unknown command, and
        the exceptions of the driver."""
        kind = command.get("command")
        if kind == "round":
            assert self.round is None, "a round is under way"
            self.round, self.marks = command["round"], sorted(command.get("marks", ()))
            self._driver.begin_round(command["round"])
        elif kind == "abort":
            under_way = self.round is not None
            self._leave("aborted")
            if under_way:
                self._driver.leave_round()
        elif kind == "configure":
            self.round = None
            self._open(command["members"], command["settings"])
            self.tell("ready")
        elif kind == "settle":
            self.is_settling = not self._is_settled
            if not self.is_settling:
                self.tell("settled", waited=False)
        elif kind == "report":
            waiting = self.session.endpoint.waiting(WAITING_MAX)
            self.tell("served", stats=self.take_unreported(), waiting=waiting)
        elif kind == "slow":
            self.slow_s = command["delay_s"]
        elif kind == "stop":
            self._driver.stop()
        else:
            raise AllReduceError(f"unknown command from the testbed: {json.dumps(command)}")

    def after_answers(self) -> None:
        """Answers a `settle` when nothing of this agent is in flight any more. The driver calls
        this between rounds, after it has sent what was due."""
        if self.is_settling and self._is_settled:
            self.is_settling = False
            self.tell("settled", waited=True)

    @property
    def _is_settled(self) -> bool:
        return self.broken_off or not self.session.endpoint.in_flight

    # A round.

    def after_batch(self) -> None:
        """Sends a `chunk` event for each count in `marks` that the round's number of completed
        chunks has reached."""
        done = self.session.endpoint.chunks_done
        while self.marks and self.marks[0] <= done:
            self.tell("chunk", round=self.round, chunk=self.marks.pop(0))

    def finish(self, start_ns: int, end_ns: int, cpu_s: float) -> None:
        """Reports to the testbed that the round has ended with a result."""
        number, self.round = self.round, None
        stats = self.take_unreported()
        self.tell("round", round=number, start_ns=start_ns, end_ns=end_ns, cpu_s=cpu_s, stats=stats)

    def fail(self, error: AllReduceError) -> None:
        """Reports to the testbed that the round has ended without a result."""
        self.failed = True
        missing = error.missing if isinstance(error, RoundTimeout) else None
        listed = None if missing is None else [list(pair) for pair in missing]
        gone = {"gone": True} if isinstance(error, ProgramFailed) else {}
        self._leave("failed", error=one_line(error), missing=listed, **gone)

    def progress(self) -> Event:
        """Returns a `progress` event for the current round, without sending it."""
        endpoint = self.session.endpoint
        return self._event(
            "progress",
            round=self.round,
            chunks=endpoint.chunks_done,
            of=endpoint.chunks,
            retransmitted=self.unreported["retransmitted"],
        )

    # What is said.

    @property
    def unreported(self) -> dict[str, int]:
        """The increase of each count since the last event that reported counts."""
        counted = self.session.stats.items()
        return {name: count - self._before.get(name, 0) for name, count in counted}

    def take_unreported(self) -> dict[str, int]:
        """Returns the increase of each count since the last report, and marks all counts as
        reported."""
        stats = self.unreported
        self._before = self.session.stats
        return stats

    def tell(self, event: str, **content: Any) -> None:
        """Sends an event, with the current time, to the testbed."""
        self._send(self._event(event, **content))

    def _event(self, event: str, **content: Any) -> Event:
        return {"event": event, **self._config.identity, **content, "t_ns": self._now_ns()}

    def _leave(self, event: str, **content: Any) -> None:
        """Leaves the current round without a result and sends an event that says so. The event is
        also sent if no round is under way, because the testbed expects an answer to every abort."""
        waiting: list[list[int]] = []
        known: dict[str, Any] = {"stats": {}}
        if self.round is not None:
            endpoint = self.session.endpoint
            waiting = endpoint.waiting(WAITING_MAX)
            known = {"chunks": endpoint.chunks_done, "stats": self.take_unreported()}
            self.broken_off = True
        number, self.round, self.marks = self.round, None, []
        self.tell(event, round=number, waiting=waiting, **known, **content)

    def sample(self) -> recording.Sample:
        """Returns a sample of the agent's state now. Its counts cover all sessions of the agent."""
        now_ns, *rest = recording.sample(self._now_ns(), self.session.stats, self.session.endpoint)
        counted = (a + b for a, b in zip(rest, self._counted_before, strict=False))
        return (now_ns, *counted, *rest[len(self._counted_before) :])

    @property
    def latencies(self) -> NDArray[np.int64]:
        """The histogram (histogram.py) of the latencies in all sessions of this agent."""
        return self._latencies_before + recording.latencies(self.session.endpoint)

    def _open(self, members: Sequence[int], settings: Mapping[str, Any]) -> None:
        """Opens a session. Counts of the previous session that no event has reported yet are
        reported with those of the new session."""
        unreported: Mapping[str, int] = {}
        if self._session is not None:
            unreported = self.unreported
            self._counted_before = list(self.sample()[1 : 1 + len(recording.COUNTED)])
            self._latencies_before = self.latencies
            self._session.close()
        self._part = self._config.part(members, settings)
        self._session = self._driver.open(self.system, self._part)
        stats = self._session.stats
        self._before = {name: count - unreported.get(name, 0) for name, count in stats.items()}
        self.broken_off = False


def one_line(error: Exception) -> str:
    """Returns the text of an exception as one line, for an event."""
    return " ".join((str(error).strip() or type(error).__name__).split())
