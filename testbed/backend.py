"""What the control of a run needs from a network, on real or on virtual time.

`testbed/control/` is written against this alone: it starts workers, sends them commands, waits
for events, begins and ends faults. A Backend knows no jobs' rounds, no recovery and no results.

Commands and events are those of hosts.agent (docs/architecture.md). Each event carries `job` and
`name` (the host), and `t_ns` on the backend's clock. A backend adds one of its own:
`{"event": "ended", "job", "name", "rank", "status"}` when a worker's program ended unasked, with
the `stats` of a round under way where they are still known (in virtual time). A switch that ends
unasked is an exception (NodeFailed) from `wait`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

from agglab.testbed.faults import Fault
from agglab.testbed.plan import Entries
from agglab.testbed.received import Received
from agglab.testbed.series.tracks import Record
from agglab.testbed.statistics import NetworkStatistics
from agglab.testbed.usage import Usage
from agglab.testbed.worker_id import Event, WorkerId

Command = Mapping[str, Any]


class Backend(Protocol):
    """A network with its switches and workers. A context manager: entering builds everything and
    starts the switches with their program, empty; leaving ends and removes all."""

    def __enter__(self) -> Backend: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def now_ns(self) -> int:
        """Of the clock that all events' times are of."""

    def write_entries(self, switch: str, entries: Entries) -> None:
        """Replace all entries and groups of a switch; its registers stay."""

    def start_worker(self, worker: WorkerId, configuration: Mapping[str, Any]) -> None:
        """Start a worker (again) with hosts.agent's configuration, but for `control` and
        `sums_dir`, which the backend adds. Its `ready` event follows."""

    def command(self, worker: WorkerId, command: Command) -> None:
        """Send a command; nothing happens if the worker has ended."""

    def wait(self, until_ns: int) -> list[Event]:
        """Events in the order they happened: returns as soon as there is one, or at `until_ns`."""

    def progress(self) -> list[Event]:
        """`progress` events for the screen alone, of workers that send none by themselves."""

    def received(self, job: int, rank: int, number: int) -> Received | None:
        """What a worker had at the end of a round, once; None if it has not come to that end."""

    def pause_worker(self, worker: WorkerId, paused: bool) -> None:
        """SIGSTOP, or SIGCONT."""

    def kill_worker(self, worker: WorkerId) -> None:
        """SIGKILL; its `ended` event follows."""

    def begin(self, fault: Fault) -> None:
        """A fault of a link: from now on."""

    def end(self, fault: Fault) -> None:
        """As if the fault of a link had never begun."""

    def inject(self, host: str, frames: Sequence[bytes]) -> None:
        """Send Ethernet frames as they are from a host, past its workers."""

    def stop_switch(self, switch: str) -> None:
        """Kill the switch's program; no `switch_ended` follows."""

    def start_switch(self, switch: str) -> None:
        """Start the program of a stopped switch again, empty."""

    def reprogram_switch(self, switch: str) -> None:
        """Give the running switch its program anew: registers, entries, counters are empty."""

    def counters(self, switch: str, counter: str) -> dict[int, tuple[int, int]] | None:
        """Packets and bytes by index (a job's index in the plan); None if the program has no such
        counter.

        Since the switch was first started: a restart loses what a switch had counted, which the
        backend adds up from what it read before `stop_switch` and `reprogram_switch`.
        """

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None:
        """The cells of a register; None if it cannot be read."""

    def statistics(self) -> NetworkStatistics:
        """Every counter of links and switches so far."""

    def record(self) -> Record:
        """What was looked at while the run went on; nothing where that was not asked for."""

    def carried_bytes(self) -> dict[str, int]:
        """By direction, bytes that have left the sender's queue so far."""

    def usage(self) -> Usage:
        """Processor time so far, by names of switches and hosts; NOTHING on virtual time."""
