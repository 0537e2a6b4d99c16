"""Collects everything that a finished run has measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.run.backend import Backend
from agglab.testbed.run.outcome import Outcome
from agglab.testbed.run.programs.program import Programs, register_bits
from agglab.testbed.run.programs.program_state import ProgramState, read_state
from agglab.testbed.run.samples import Record
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.systems.base import Cells, System


@dataclass(frozen=True)
class Measurements:
    """Everything that a finished run measured.

    counters: for each switch, each kind of counter and each index of a job, the packets and the
    bytes. The last index is for packets that belong to no job. register_bits: switch -> bits of all
    registers of its program. processors: the number of processors that the run may use. `usage` in
    `outcome` covers only the rounds. record: the samples over time. programs: what the program of
    each switch holds that no system declares.
    """

    outcome: Outcome
    statistics: NetworkStatistics
    counters: Mapping[str, Mapping[str, Cells]]
    register_bits: Mapping[str, int]
    processors: int
    record: Record = field(default_factory=Record)
    programs: Mapping[str, ProgramState] = field(default_factory=dict)


def collect(
    resolved: ResolvedScenario, backend: Backend, outcome: Outcome, programs: Programs
) -> Measurements:
    """Reads all counters and states of a network in which a run has just ended."""
    declared, asked = declared_counters(resolved.system), resolved.scenario.switch.registers
    counters = {switch: _counters(resolved.system, backend, switch) for switch in programs}
    return Measurements(
        outcome,
        backend.statistics(),
        counters,
        {switch: register_bits(program) for switch, program in programs.items()},
        len(os.sched_getaffinity(0)),
        backend.record(),
        read_state(backend, programs, declared, asked),
    )


def declared_counters(system: System) -> set[str]:
    """Returns the names of the counters that the system declares, as its program spells them."""
    return {counter.name for counter in system.counters.values()}


def _counters(system: System, backend: Backend, switch: str) -> dict[str, Cells]:
    """Returns the switch's counters, by their keys in `system.counters`. A user's own program may
    have fewer than Agglab's."""
    read = {kind: backend.counters(switch, each.name) for kind, each in system.counters.items()}
    return {kind: cells for kind, cells in read.items() if cells is not None}
