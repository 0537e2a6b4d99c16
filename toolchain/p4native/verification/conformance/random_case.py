"""Runs one random case (a program with packets) on every pair of compiler and switch, and finds
which outcomes differ."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4native import switch
from p4native.bmv2.engine import QUIET_S, Bmv2
from p4native.bmv2.errors import ControlError, CouldNotRun
from p4native.common.object_names import is_called
from p4native.compiler import Diagnostics, Options, compile_file, with_deep_stack
from p4native.stf import Add, Binder, Command, Engine, Expect, Library, Run, StfError, parse
from p4native.verification.conformance.pairs import (
    SPECIFICATION,
    DoesNotCompile,
    Pair,
    compile_with,
)
from p4native.verification.interpreter import Machine, UnknownConstruct
from p4native.verification.interpreter.engine import Specification
from p4native.verification.random_programs import PORTS

THRIFT_BITS = 63
"""The widest register whose cells are compared. BMv2 does not report the values of wider
registers."""
WITNESSES = [Expect(0, port, None) for port in range(PORTS)]
"""Expectations that make BMv2 open every port, whatever the script expects there."""


@dataclass(frozen=True)
class Outcome:
    """What happened when a case ran on one pair: the frames that left each port, in any order, and
    the cells of the program's counters and registers. If the program was refused, or a compiler or
    switch could not run, only the reason is given."""

    frames: Mapping[int, tuple[bytes, ...]]
    cells: tuple[tuple[str, int, int], ...] = ()
    refused: str = ""
    not_run: str = ""

    def __str__(self) -> str:
        return self.refused or self.not_run or f"{sum(map(len, self.frames.values()))} packets"


def run_pairs(
    program: Path,
    script: str,
    pairs: Sequence[Pair],
    folder: Path,
    quiet_s: float = QUIET_S,
    flags: Sequence[str] = (),
) -> dict[Pair, Outcome]:
    """Returns the outcomes of `program` and `script`. folder: an empty folder for intermediate
    files. flags: flags for our compiler."""
    compiled: dict[str, Path | Outcome] = {}
    outcomes = {}
    for pair in pairs:
        if pair == SPECIFICATION:
            outcomes[pair] = _interpret(program, parse(script), compiled.get("p4native"))
            continue
        if pair.compiler not in compiled:
            compiled[pair.compiler] = _compile(pair.compiler, program, folder, flags)
        made = compiled[pair.compiler]
        if isinstance(made, Outcome):
            outcomes[pair] = made
            continue
        scratch = folder / str(pair)
        scratch.mkdir()
        outcomes[pair] = _run(made, parse(script), pair.switch, scratch, quiet_s)
    return outcomes


def _compile(compiler: str, program: Path, folder: Path, flags: Sequence[str]) -> Path | Outcome:
    path = folder / f"{compiler}.json"
    try:
        compile_with(compiler, program, path, flags if compiler == "p4native" else ())
    except DoesNotCompile as error:
        return Outcome({}, refused=f"does not compile: {_first_error(str(error))}")
    except CouldNotRun as error:
        return Outcome({}, not_run=str(error))
    except Exception as error:  # ours: a fault to be found
        return Outcome({}, refused=f"does not compile: {type(error).__name__}: {error}")
    return path


def _interpret(program: Path, commands: list[Command], names: Path | Outcome | None) -> Outcome:
    """Returns the outcome that the P4 specification prescribes, as the interpreter computes it.
    names: the output of our compiler, which contains the names that a script may use. There is no
    outcome without `names`."""
    if not isinstance(names, Path):
        return Outcome({}, refused="does not compile: there are no names without our compiler")
    diagnostics = Diagnostics()
    typed = compile_file(str(program), Options(), diagnostics)
    assert typed is not None, "our compiler has just compiled it"
    document = json.loads(names.read_text())
    try:
        return with_deep_stack(lambda: _execute(document, Specification(Machine(typed)), commands))
    except (UnknownConstruct, StfError) as error:
        return Outcome({}, not_run=f"the interpreter does not know {error}")


def _first_error(said: str) -> str:
    """Returns the error message alone, without places and numbers, so that equal faults are counted
    as one."""
    found = re.search(r"(?:\[--Werror=[\w-]+\] )?error: .*|.*(?:BUG|Bug:|Exception|Error:).*", said)
    return re.sub(r"\d+", "N", found[0])[:160] if found else said.strip()[-160:]


def _run(
    json_path: Path, commands: list[Command], target: str, folder: Path, quiet_s: float
) -> Outcome:
    document = json.loads(json_path.read_text())
    try:
        if target == "bmv2":
            with Bmv2(json_path, folder, [*commands, *WITNESSES], quiet_s) as engine:
                return _execute(document, engine, commands)
        with switch.Pipeline.load(json_path, quick=True) as pipeline:
            return _execute(document, Library(pipeline), commands)
    except CouldNotRun as error:
        return Outcome({}, not_run=str(error))
    except (StfError, ControlError, switch.ProgramError, switch.PipelineError) as error:
        text = str(error).replace(str(json_path), "prog.json")
        return Outcome({}, refused=f"does not run: {text[:300]}")


def _execute(document: dict[str, Any], engine: Engine, commands: list[Command]) -> Outcome:
    binder = Binder(document)
    run = Run(binder, engine)
    run.execute(c for c in commands if not isinstance(c, Add) or _has_table(binder, c))
    frames = {port: tuple(sorted(found)) for port, found in sorted(run.captured.items())}
    return Outcome(frames, _cells(document, engine) if len(commands) > run.packets else ())


def _has_table(binder: Binder, command: Add) -> bool:
    """Whether the program has the command's table. Compilers leave out tables that are never
    applied."""
    return any(is_called(name, command.table) for name in binder.tables)


def _cells(document: dict[str, Any], engine: Engine) -> tuple[tuple[str, int, int], ...]:
    """Returns packets and bytes of every counter cell, and 0 and the value of each register cell.
    They are only read if the script has commands, because starting BMv2's command line takes longer
    than processing all packets."""
    found = []
    for array in document["counter_arrays"]:
        for index in range(0 if array.get("is_direct") else array["size"]):
            counted = engine.counter(array["name"], index)
            found.append((f"{array['name']}[{index}]", *counted))
    for array in document["register_arrays"]:
        for index in range(array["size"] if array["bitwidth"] <= THRIFT_BITS else 0):
            found.append((f"{array['name']}[{index}]", 0, engine.register(array["name"], index)))
    return tuple(found)


def groups(outcomes: Mapping[Pair, Outcome]) -> list[list[Pair]]:
    """Returns the pairs in groups with the same outcome. The group of the first pair comes
    first."""
    found: list[tuple[Outcome, list[Pair]]] = []
    for pair, outcome in outcomes.items():
        for known, members in found:
            if known == outcome:
                members.append(pair)
                break
        else:
            found.append((outcome, [pair]))
    return [members for _, members in found]


def describe(outcomes: Mapping[Pair, Outcome]) -> list[str]:
    """Returns lines about which pairs agree, and which packets only some of them sent."""
    parts = groups(outcomes)
    lines = [f"{', '.join(map(str, part))}: {outcomes[part[0]]}" for part in parts]
    reference = outcomes[parts[0][0]]
    for part in parts[1:]:
        other = outcomes[part[0]]
        for port in sorted(reference.frames.keys() | other.frames.keys()):
            one, two = (Counter(o.frames.get(port, ())) for o in (reference, other))
            for who, rest in ((parts[0][0], one - two), (part[0], two - one)):
                lines += [f"  only {who}: port {port} {f.hex()}" for f in list(rest)[:3]]
        changed = [c for c, d in zip(other.cells, reference.cells, strict=False) if c != d]
        lines += [f"  {part[0]}: {name}: {n}, {size}" for name, n, size in changed]
    return lines
