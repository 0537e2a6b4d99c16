"""What switches are filled with, now and when jobs, members or switches change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agglab.testbed.own_entries import Fill
from agglab.testbed.plan import Entries
from agglab.testbed.systems.base import ActiveJob, System
from agglab.topologies import Topology


class Switches(Protocol):
    """What a filler needs of a backend."""

    def install(self, switch: str, entries: Entries) -> None: ...


class Filler:
    """fill: what the user's own entries make of those that the system plans."""

    def __init__(self, switches: Switches, system: System, graph: Topology, fill: Fill) -> None:
        self._switches, self._system, self._graph, self._fill = switches, system, graph, fill
        self._jobs: list[ActiveJob] | None = None
        self._entries: Mapping[str, Entries] = {}

    def fill_for(self, jobs: Sequence[ActiveJob]) -> None:
        """Fill all switches for these jobs, unless that is what they are filled for."""
        if list(jobs) == self._jobs:
            return
        self._jobs = list(jobs)
        self._entries = self._system.tables(self._graph, self._jobs)
        for switch in self._entries:
            self.fill_again(switch)

    def fill_again(self, switch: str) -> None:
        """One switch, which has lost what it held."""
        self._switches.install(switch, self._fill(switch, self._entries[switch]))
