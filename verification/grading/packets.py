"""Judges a case that sends packets to the program (STF), and tells what went wrong by the packet
that showed it: what was sent, what had to come, and what came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agglab.switch import Pipeline, PipelineError
from agglab.switch.files import read_bytes
from agglab.testbed.command_lines import module
from agglab.verification.grading.described import (
    described,
    described_nibbles,
    differing,
    path_on_a_shell,
)
from agglab.verification.grading.lab import Case
from agglab.verification.grading.result import Judged
from agglab.verification.stf import Binder, Command, Expect, Library, Packet, Run, StfError, parse

Frames = list[tuple[int, bytes]]
LINES_MAX = 12


@dataclass(frozen=True)
class Sent:
    """One packet of a script. came: what the program sent because of it. before, after: the cells
    that the case names."""

    port: int
    frame: bytes
    came: Frames
    before: Mapping[str, int]
    after: Mapping[str, int]


@dataclass(frozen=True)
class Difference:
    """The first difference on one port. packet: the index of the packet that showed it. expect: the
    packet that had to come; None if none had to. frame: what came in its place; None if nothing
    came."""

    packet: int
    port: int
    expect: Expect | None
    frame: bytes | None


class Watched(Library):
    """A switch that notes what each packet causes."""

    def __init__(self, pipeline: Pipeline, cells: Sequence[tuple[str, str, int]]) -> None:
        """cells: the text, register and index of each cell that is noted."""
        super().__init__(pipeline)
        self._cells = cells
        self.sent: list[Sent] = []

    def send(self, port: int, frame: bytes) -> None:
        before, came = self._values(), len(self.out)
        super().send(port, frame)
        self.sent.append(Sent(port, frame, self.out[came:], before, self._values()))

    def _values(self) -> dict[str, int]:
        return {text: self.register(name, index) for text, name, index in self._cells}


def judge(case: Case, json: Path, binder: Binder, program: Path) -> Judged:
    """Judges the program in a BMv2 JSON file with a case. program: the path of the student's file,
    for the command that repeats the case."""
    commands = parse(read_bytes(case.path).decode(errors="replace"))
    files = f"{path_on_a_shell(program)} {path_on_a_shell(case.path)}"
    replay = f"{module('agglab.verification')} stf {files}"
    pipeline = Pipeline.load(json)
    try:
        switch = Watched(pipeline, list(_cells(case, binder)))
        run = Run(binder, switch)
        run.execute(commands)
    except StfError as error:
        lacking = f"{case.path.name}, line {error.line}: {error}"
        return Judged(case.id, False, (f"The program lacks what the test uses: {lacking}.",))
    except PipelineError as error:
        return Judged(case.id, False, (f"The program cannot be run: {error}.",))
    finally:
        pipeline.close()
    if not run.failures:
        return Judged(case.id, True)
    return Judged(case.id, False, tuple(_story(commands, switch, run, binder)), None, replay)


def _cells(case: Case, binder: Binder) -> Iterator[tuple[str, str, int]]:
    """Yields the cells that a case names and the program has."""
    for text in case.registers:
        name, _, index = text.rstrip("]").partition("[")
        try:
            yield text, binder.array("register", name, 0), int(index or "0")
        except (StfError, ValueError):
            continue  # a program may have other registers than the solution


def _story(commands: Sequence[Command], switch: Watched, run: Run, binder: Binder) -> Iterator[str]:
    """Yields lines about the first packet after which something else came than expected. If a check
    of a cell failed, yields the script's own words."""
    wrong = min(_differences(commands, switch.sent), key=lambda each: each.packet, default=None)
    if wrong is None:
        yield from "\n".join(run.failures).splitlines()[:LINES_MAX]
        return
    sent = switch.sent[wrong.packet]
    if wrong.packet:
        yield f"After {wrong.packet} packet{'s' * (wrong.packet > 1)}:"
    yield f"  sent to port {sent.port}: {described(binder, sent.frame)}"
    yield f"  expected {_expectation(binder, wrong, sent.frame)}"
    for port, frame in sent.came[:LINES_MAX]:
        yield f"  came     from port {port}: {described(binder, frame)}"
    if not sent.came:
        yield "  came     nothing"
    elif wrong.expect is not None and wrong.frame is not None:
        yield from (
            f"  differs  in {text}" for text in differing(binder, wrong.expect, wrong.frame)
        )
    for cell, before in sent.before.items():
        yield f"  {cell} was {before}, and is {sent.after[cell]}"


def _expectation(binder: Binder, wrong: Difference, sent: bytes) -> str:
    if wrong.expect is None:
        return f"nothing from port {wrong.port}"
    nibbles = wrong.expect.nibbles or ""
    if not nibbles.strip("*"):
        return f"from port {wrong.port}: any packet"
    alike = wrong.frame or sent
    return f"from port {wrong.port}: {described_nibbles(binder, nibbles, alike)}"


def _differences(commands: Sequence[Command], sent: Sequence[Sent]) -> Iterator[Difference]:
    """Yields the first difference on each port. The packets of a port are compared in their order,
    as in STF; an expected packet belongs to the packet before it in the script at the latest."""
    expected: dict[int, list[tuple[int, Expect]]] = {}
    came: dict[int, list[tuple[int, bytes]]] = {}
    packets = 0
    for command in commands:
        packets += isinstance(command, Packet)
        if isinstance(command, Expect):
            expected.setdefault(command.port, []).append((max(0, packets - 1), command))
    for index, each in enumerate(sent):
        for port, frame in each.came:
            came.setdefault(port, []).append((index, frame))
    for port in sorted({*expected, *came}):
        yield from _difference(port, expected.get(port, []), came.get(port, []))


def _difference(
    port: int, expected: Sequence[tuple[int, Expect]], came: Sequence[tuple[int, bytes]]
) -> Iterator[Difference]:
    """Yields the first difference on one port, if there is one."""
    if any(expect.nibbles is None for _, expect in expected):
        if not came:
            yield Difference(expected[0][0], port, expected[0][1], None)
        return
    for (at, expect), (cause, frame) in zip(expected, came, strict=False):
        if not expect.matches(frame):
            yield Difference(min(at, cause), port, expect, frame)
            return
    common = min(len(expected), len(came))
    for at, expect in expected[common : common + 1]:
        yield Difference(at, port, expect, None)
    for cause, frame in came[common : common + 1]:
        yield Difference(cause, port, None, frame)
