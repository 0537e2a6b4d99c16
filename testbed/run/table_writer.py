"""Writes the table entries of switches, at the start and when jobs, members or switches change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from agglab.testbed.run.programs.user_entries import Fill
from agglab.testbed.systems.base import ActiveJob, Changes, System
from agglab.testbed.systems.plan import Entries, TableEntry
from agglab.topologies import Topology


class Switches(Protocol):
    """The methods of a backend that a TableWriter calls."""

    def write_entries(self, switch: str, entries: Entries) -> None: ...


class TableWriter:
    """Writes the entries of a run's switches. fill: adds the user's own entries to those that the
    system plans."""

    def __init__(self, switches: Switches, system: System, graph: Topology, fill: Fill) -> None:
        self._switches, self._system, self._graph, self._fill = switches, system, graph, fill
        self._jobs: list[ActiveJob] | None = None
        self._entries: Mapping[str, Entries] = {}
        self._controlled: dict[int, dict[str, tuple[TableEntry, ...]]] = {}
        self._down: set[str] = set()

    def write_for(self, jobs: Sequence[ActiveJob]) -> None:
        """Writes the entries of all switches for these jobs, unless they were already written for
        them."""
        if list(jobs) == self._jobs:
            return
        self._jobs = list(jobs)
        self._entries = self._system.tables(self._graph, self._jobs)
        for switch in self._entries:
            if switch not in self._down:
                self.write_again(switch)

    def stopped(self, switch: str) -> None:
        """Marks a switch as stopped. It gets no entries until `write_again` is called for it."""
        self._down.add(switch)

    def write_again(self, switch: str) -> None:
        """Writes the entries of one switch again."""
        self._down.discard(switch)
        self._switches.write_entries(switch, self._wanted(switch))

    def control(self, job: int, changes: Changes) -> dict[str, int]:
        """Replaces the entries that a job's controller has set. job: the job's number. Returns for
        each switch how many of these entries have changed."""
        own, differing = self._controlled.setdefault(job, {}), dict[str, int]()
        for switch, entries in changes.items():
            before, own[switch] = own.get(switch, ()), tuple(entries)
            gone = [entry for entry in before if entry not in entries]
            come = [entry for entry in entries if entry not in before]
            if gone or come:
                differing[switch] = len(gone) + len(come)
                if switch not in self._down:
                    self.write_again(switch)
        return differing

    def _wanted(self, switch: str) -> Entries:
        planned = self._entries[switch]
        more = (entry for own in self._controlled.values() for entry in own.get(switch, ()))
        return self._fill(switch, replace(planned, tables=(*planned.tables, *more)))
