"""Defines Measurements, which holds everything that a finished run has measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agglab.testbed.control.outcome import Outcome
from agglab.testbed.program_state import ProgramState
from agglab.testbed.series.tracks import Record
from agglab.testbed.statistics import NetworkStatistics
from agglab.testbed.systems.base import Cells


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
