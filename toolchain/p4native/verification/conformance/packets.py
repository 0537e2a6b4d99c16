"""Runs a program and its packet test on every pair of compiler and switch, and reports differences
packet by packet and field by field."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from p4native import switch
from p4native.bmv2.engine import Bmv2
from p4native.bmv2.errors import CouldNotRun
from p4native.stf import Binder, Command, Engine, Expect, Library, Run, StfError, parse
from p4native.stf.show import differing_fields, side_by_side
from p4native.verification.conformance.pairs import DoesNotCompile, Pair, compile_with
from p4native.verification.corpus import script_of


@dataclass(frozen=True)
class Case:
    """A program and the script that tests it. A program without a script only needs to load."""

    program: Path
    script: Path | None

    @property
    def name(self) -> str:
        """The program's path, relative to the current folder if the program is inside it."""
        path, here = self.program.resolve(), Path.cwd()
        return str(path.relative_to(here) if path.is_relative_to(here) else path)


@dataclass(frozen=True)
class Outcome:
    """What happened when a case ran on one pair. frames: the packets that came out, by port.
    not_run: the reason if a compiler or switch could not run; then there is nothing to compare."""

    failures: list[str]
    frames: Mapping[int, list[bytes]] = field(default_factory=dict)
    not_run: str = ""


@dataclass(frozen=True)
class Found:
    """The findings of one case, as paragraphs. differs: failures of a pair, and differences from
    the first pair that has no failure. not_run: the pairs that could not run, with the reasons."""

    differs: list[str]
    not_run: list[str]


def cases(programs: Iterable[Path]) -> list[Case]:
    """Returns the cases of programs, each with the packet test that lies beside it, if there is
    one."""
    return [Case(program, script_of(program)) for program in programs]


def run_case(case: Case, pairs: Sequence[Pair]) -> Found:
    """Runs the case on every pair and returns the findings."""
    commands = parse(case.script.read_text(errors="replace")) if case.script else []
    with tempfile.TemporaryDirectory(prefix="p4native-conformance-") as folder:
        outcomes = {pair: _outcome(case, commands, pair, Path(folder)) for pair in pairs}
        found = [
            f"{case.name} on {pair}: {failure}"
            for pair, outcome in outcomes.items()
            for failure in outcome.failures
        ]
        right = [p for p in pairs if not (outcomes[p].failures or outcomes[p].not_run)]
        for pair in right[1:]:
            binder = Binder(json.loads(_json(Path(folder), pair).read_text()))
            for text in differences(binder, commands, outcomes[right[0]], outcomes[pair]):
                found.append(f"{case.name} on {pair}, expected as on {right[0]}: {text}")
    silent = [f"{case.name} on {p}: {o.not_run}" for p, o in outcomes.items() if o.not_run]
    return Found(found, silent)


def _includes(program: Path) -> tuple[str, ...]:
    return ("-I", str(program.parent))


def _json(folder: Path, pair: Pair) -> Path:
    return folder / f"{pair.compiler}.json"


def _outcome(case: Case, commands: Sequence[Command], pair: Pair, folder: Path) -> Outcome:
    path = _json(folder, pair)
    try:
        if not path.exists():
            compile_with(pair.compiler, case.program, path, _includes(case.program))
        return _run(path, commands, pair.switch, folder / str(pair))
    except CouldNotRun as error:
        return Outcome([], not_run=str(error))
    except DoesNotCompile as error:
        return Outcome([f"does not compile\n{error}"])
    except (StfError, switch.ProgramError, switch.PipelineError) as error:
        return Outcome([str(error)])


def _run(json_path: Path, commands: Sequence[Command], target: str, folder: Path) -> Outcome:
    binder = Binder(json.loads(json_path.read_text()))
    if target == "bmv2":
        folder.mkdir()
        with Bmv2(json_path, folder, commands) as engine:
            return _execute(binder, engine, commands)
    pipeline = switch.Pipeline.load(json_path)
    try:
        return _execute(binder, Library(pipeline), commands)
    finally:
        pipeline.close()


def _execute(binder: Binder, engine: Engine, commands: Sequence[Command]) -> Outcome:
    run = Run(binder, engine)
    run.execute(commands)
    return Outcome(run.failures, run.captured)


def differences(
    binder: Binder, commands: Sequence[Command], reference: Outcome, other: Outcome
) -> Iterator[str]:
    """Yields the differences between two outcomes, except where the script allows several
    outcomes."""
    for port in sorted(reference.frames.keys() | other.frames.keys()):
        wanted = [c for c in commands if isinstance(c, Expect) and c.port == port]
        if any(expect.nibbles is None for expect in wanted):
            continue
        right, got = reference.frames.get(port, []), other.frames.get(port, [])
        if len(right) != len(got):
            yield f"port {port}: {len(got)} packets came out, not {len(right)}"
        for number, (frame, actual) in enumerate(zip(right, got, strict=False)):
            open_nibbles = (wanted[number].nibbles or "") if number < len(wanted) else ""
            expect = Expect(0, port, _masked(frame, open_nibbles), exact=True)
            if not expect.matches(actual):
                where = f"port {port}, packet {number + 1} of {len(right)} differs"
                fields = differing_fields(binder, expect, actual)
                yield "\n".join([where, *side_by_side(expect, actual), *fields])


def _masked(frame: bytes, written: str) -> str:
    """Returns the frame's hexadecimal digits, with `*` where the script has `*`."""
    stars = written.ljust(2 * len(frame))
    return "".join("*" if s == "*" else n for n, s in zip(frame.hex(), stars, strict=False))
