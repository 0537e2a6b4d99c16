"""What a user's own P4 program has counted, and the registers that the scenario asks for, as they
are at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agglab.testbed.base.errors import CompileError
from agglab.testbed.base.problems import nearest, quote
from agglab.testbed.run.backend import Backend, CounterMeter
from agglab.testbed.run.programs.program import Program, Programs
from agglab.testbed.schema.series_metrics import COUNTER_NAME
from agglab.testbed.systems.base import Cells
from p4native.common.object_names import UnresolvedName, full_name, is_called

NAME = "program.json"
"""The file in a result folder."""
CELLS_MAX = 65_536
"""The largest number of cells of a register that is written to the file."""
SAMPLED_CELLS_MAX = 1024
"""The largest number of cells of a counter that is sampled over time."""


@dataclass(frozen=True)
class ProgramState:
    """What the program of one switch holds. counters: the cells of each of its own counters, by the
    name in metrics.json; the cells of a direct counter are those of the table's entries, in their
    order. by_bytes: the counters that count only bytes. registers: the cells of each register that
    was asked for; None for one that could not be read."""

    counters: Mapping[str, Cells] = field(default_factory=dict)
    by_bytes: frozenset[str] = frozenset()
    registers: Mapping[str, list[int] | None] = field(default_factory=dict)

    @property
    def totals(self) -> dict[str, int]:
        """The sum over the cells of each counter: packets, or bytes if it counts only these."""
        return {
            name: sum(cell[name in self.by_bytes] for cell in cells.values())
            for name, cells in self.counters.items()
        }

    def described(self) -> dict[str, Any]:
        """Returns the contents of the file for this switch, without cells that are zero."""
        counters = {
            name: {
                str(index): {"packets": packets, "bytes": size}
                for index, (packets, size) in cells.items()
                if packets or size
            }
            for name, cells in self.counters.items()
        }
        registers = {
            name: None
            if cells is None
            else {
                "cells": len(cells),
                "not_zero": {str(index): value for index, value in enumerate(cells) if value},
            }
            for name, cells in self.registers.items()
        }
        return {"counters": counters, "registers": registers}


def own_counters(program: Program, declared: Iterable[str]) -> dict[str, str]:
    """Returns the full name of each counter of a program that its system does not declare, by its
    name in metrics.json. That is the last part of the full name, or all of it with `_` for each dot
    if several counters have the same last part."""
    known = list(declared)
    names = [each["name"] for each in program.description["counter_arrays"]]
    own = [name for name in names if not any(is_called(name, each) for each in known)]
    last = [name.rpartition(".")[2] for name in own]
    return {
        short if last.count(short) == 1 else name.replace(".", "_"): name
        for short, name in zip(last, own, strict=True)
    }


def check_asked(program: Program, asked: Iterable[str]) -> None:
    """Raises CompileError with one line if a program does not have a register that is asked for, or
    if that is too large to be written to a file."""
    arrays = {each["name"]: each for each in program.description["register_arrays"]}
    for name in asked:
        try:
            array = arrays[full_name(arrays, name, "register")]
        except UnresolvedName:
            last = {each.rpartition(".")[2] for each in arrays}
            near = nearest(name, sorted(last))
            allowed = ", ".join(sorted(last)) or "none"
            problem = f"switch.registers: the program has no register {quote(name)}{near}"
            raise CompileError(f"{program.source}: {problem}; allowed: {allowed}") from None
        if array["size"] > CELLS_MAX:
            size = f"register {array['name']} has {array['size']} cells"
            raise CompileError(
                f"{program.source}: {size}; switch.registers takes at most {CELLS_MAX}"
            )


def read_state(
    backend: Backend, programs: Programs, declared: Iterable[str], asked: Iterable[str]
) -> dict[str, ProgramState]:
    """Returns what the program of each switch holds now. declared: the names of the counters that
    the system declares. asked: the registers to read."""
    known, wanted = list(declared), list(asked)
    return {
        switch: _state(backend, switch, program, known, wanted)
        for switch, program in programs.items()
    }


def counter_meter(programs: Programs, declared: Iterable[str]) -> CounterMeter | None:
    """Returns a function that reads the sums of the programs' own counters, of those that are cheap
    to sample; None if there are none. declared: the names of the counters that the system
    declares."""
    known = list(declared)
    sampled = {switch: _sampled(program, known) for switch, program in programs.items()}
    by_bytes = {switch: _by_bytes(programs[switch], names) for switch, names in sampled.items()}

    def totals(backend: Backend, switch: str) -> dict[str, int]:
        names = sampled[switch].items()
        cells = {short: backend.counters(switch, name) or {} for short, name in names}
        return ProgramState(cells, by_bytes[switch]).totals

    return totals if any(sampled.values()) else None


def _sampled(program: Program, declared: Iterable[str]) -> dict[str, str]:
    """Returns the own counters that are sampled: those with few cells and an ordinary name."""
    arrays = program.description["counter_arrays"]
    large = {each["name"] for each in arrays if each.get("size", 0) > SAMPLED_CELLS_MAX}
    return {
        short: name
        for short, name in own_counters(program, declared).items()
        if name not in large and COUNTER_NAME.fullmatch(short)
    }


def _state(
    backend: Backend, switch: str, program: Program, declared: list[str], asked: list[str]
) -> ProgramState:
    names = own_counters(program, declared)
    read = {short: backend.counters(switch, name) for short, name in names.items()}
    arrays = {each["name"]: each for each in program.description["register_arrays"]}
    registers = {}
    for name in asked:
        full = full_name(arrays, name, "register")
        cells = list(range(arrays[full]["size"]))
        registers[name] = backend.registers(switch, full, cells)
    return ProgramState(
        {short: cells for short, cells in read.items() if cells is not None},
        _by_bytes(program, names),
        registers,
    )


def _by_bytes(program: Program, names: Mapping[str, str]) -> frozenset[str]:
    """Returns those of a program's own counters that count only bytes. names: the counters' full
    names. Protobuf is imported only if there are any."""
    if not names:
        return frozenset()
    from p4native.switch.p4runtime.text import read_p4info

    info = read_p4info(program.p4info.read_bytes())
    counters = [*info.counters, *info.direct_counters]
    sizes = {each.preamble.name for each in counters if each.spec.unit == each.spec.BYTES}
    return frozenset(short for short, name in names.items() if name in sizes)
