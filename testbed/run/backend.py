"""The interface through which a run's control uses a network, in real or in virtual time.

`testbed/run/` uses nothing else: it starts workers, sends them commands, waits for events, and
begins and ends faults. A Backend knows nothing about rounds, recovery or results.

Commands and events are those of hosts.agent (docs/architecture.md). Each event carries `job` and
`name` (the host), and `t_ns` on the backend's clock. A backend adds one kind of event: `{"event":
"ended", "job", "name", "rank", "status"}`, if a worker's program ended without being told to. In
virtual time this event also has the `stats` of the current round. A switch that ends without being
told to makes `wait` raise NodeFailed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

from agglab.testbed.base.processor_time import Usage
from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.base.worker_id import Event, WorkerId
from agglab.testbed.run.samples import Record
from agglab.testbed.schema.faults import Fault
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.received_arrays import Received
from agglab.topologies.graph import Impairment

Command = Mapping[str, Any]


class Backend(Protocol):
    """A network with its switches and workers. A context manager: entering it builds everything and
    starts the switches with empty programs; leaving it stops and removes everything."""

    def __enter__(self) -> Backend: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def now_ns(self) -> int:
        """Returns the time on the clock that all events use, in nanoseconds."""

    def write_entries(self, switch: str, entries: Entries) -> None:
        """Replaces all entries and groups of a switch; its registers keep their values."""

    def start_worker(self, worker: WorkerId, configuration: Mapping[str, Any]) -> None:
        """Starts a worker, or starts it again, with the configuration of hosts.agent. The backend
        adds the keys `control` and `sums_dir`. The worker's `ready` event follows."""

    def command(self, worker: WorkerId, command: Command) -> None:
        """Sends a command; does nothing if the worker has ended."""

    def wait(self, until_ns: int) -> list[Event]:
        """Returns events in the order in which they happened, as soon as there is one, or at
        `until_ns`."""

    def progress(self) -> list[Event]:
        """Returns `progress` events for those workers that do not send such events themselves. The
        events are only for the screen."""

    def received(self, job: int, rank: int, number: int) -> Received | None:
        """Returns what a worker had received by the end of a round, and forgets it. Returns None if
        the worker did not complete the round."""

    def pause_worker(self, worker: WorkerId, paused: bool) -> None:
        """Sends the worker's program SIGSTOP, or SIGCONT if `paused` is false."""

    def kill_worker(self, worker: WorkerId) -> None:
        """Sends the worker's program SIGKILL; its `ended` event follows."""

    def set_link_down(self, fault: int, link: str, down: bool) -> None:
        """Makes a link lose every frame from now on; if `down` is false, the link carries frames
        again. fault: the number of the fault, here and in `set_rate` and `set_impairment`."""

    def set_rate(self, fault: int, directions: Sequence[str], rate_bps: int | None) -> None:
        """Gives directions of a link another rate; None restores the rates that the topology
        declares."""

    def set_impairment(
        self, fault: int, link: str, directions: Sequence[str], impairment: Impairment, on: bool
    ) -> None:
        """Adds an impairment to directions of a link, or removes it again."""

    def expect_fault(self, fault: Fault) -> None:
        """Gets ready for a fault of a link that was not known when the network was built. Raises
        ValueError with one line if the network cannot have the fault any more."""

    def inject(self, host: str, frames: Sequence[bytes]) -> None:
        """Sends Ethernet frames unchanged from a host, bypassing its workers."""

    def stop_switch(self, switch: str) -> None:
        """Kills the switch's program; no event follows."""

    def start_switch(self, switch: str) -> None:
        """Starts the program of a stopped switch again, with empty registers and tables."""

    def set_program(self, switch: str, program: Any) -> None:
        """Gives a switch another program, as the backend takes it, from the next `reprogram_switch`
        or `start_switch` on."""

    def reprogram_switch(self, switch: str) -> None:
        """Loads the running switch's program again, which empties registers, entries and
        counters."""

    def entries(self, switch: str) -> Entries:
        """Returns the entries and groups that a switch has now."""

    def counters(self, switch: str, counter: str) -> dict[int, tuple[int, int]] | None:
        """Returns packets and bytes by index (the index of a job in the plan), or None if the
        program has no such counter.

        The counts start when the switch was first started. A restart clears the switch's counters,
        so the backend reads them before `stop_switch` and `reprogram_switch` and adds the counts
        up.
        """

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None:
        """Returns the cells of a register, or None if it cannot be read."""

    def statistics(self) -> NetworkStatistics:
        """Returns the current values of all counters of links and switches."""

    def record(self) -> Record:
        """Returns the samples taken during the run. The record is empty if the run takes no
        samples."""

    def carried_bytes(self) -> dict[str, int]:
        """Returns for each direction of a link the bytes that have left the sender's queue so
        far."""

    def usage(self) -> Usage:
        """Returns the processor time used so far, by names of switches and hosts. In virtual time
        it returns the constant NOTHING."""


CounterMeter = Callable[[Backend, str], Mapping[str, int]]
"""A function that takes the backend and the name of a switch. It returns what the own counters of
the switch's program have counted so far, by name."""
