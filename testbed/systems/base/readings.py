"""What can be read from a running network, and who reads it: meters of slots, and controllers that
change tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.systems.base.active_job import ActiveJob
from agglab.testbed.systems.plan import TableEntry

Cells = Mapping[int, tuple[int, int]]
"""The cells of a switch's counter: (packets, bytes) by index."""


class Registers(Protocol):
    """What a slot meter can read from a running backend."""

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None: ...


class Readings(Registers, Protocol):
    """What a controller can read from a running backend. A method returns None for a switch that
    cannot be read now."""

    def counters(self, switch: str, counter: str) -> Cells | None: ...


class Evidence(Readings, Protocol):
    """What a diagnosis can read from a running backend."""

    def statistics(self) -> NetworkStatistics: ...


SlotMeter = Callable[[Registers, str], "int | None"]
"""A function that takes the means to read switches, and the name of a switch. It returns the number
of slots in use; None for a switch without slots."""


Changes = Mapping[str, Sequence[TableEntry]]
"""All entries that a controller wants at each switch, in addition to those of `System.tables`. A
switch that is not named keeps its entries."""


class Controller(Protocol):
    """Changes tables while a job runs.

    A controller uses neither clocks nor networks. Its methods are given the time (ns since the
    scenario's times began to count) and access to the switches. They return the new entries of
    switches if these change. Only differences from the old entries are sent to a switch.
    """

    @property
    def deadline_ns(self) -> int:
        """The time at which `step` must be called; the largest int64 for never."""

    @property
    def patience_ns(self) -> int:
        """How long after a deadline the changes that `step` returns may take to be in place. If
        they take longer, the deadline counts as missed."""

    def begin_round(
        self, now_ns: int, number: int, job: ActiveJob, switches: Readings
    ) -> Changes | None:
        """Returns the changes before an attempt at a round begins. When this method is called, no
        packet of the job is in flight, and none will be before the changes are in place."""

    def step(self, now_ns: int, switches: Readings) -> Changes | None:
        """Returns the changes at a deadline, and sets the next deadline. A round may be in
        progress."""
