"""Judges a case that sends packets to the program (STF), and tells what went wrong by the packet
that showed it: what was sent, what had to come, and what came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from agglab.testbed.base.command_lines import launcher, path_on_a_shell
from agglab.verification.grading import symptoms
from agglab.verification.grading.lab import LACKING, Case
from agglab.verification.grading.result import Judged
from agglab.verification.grading.symptoms import Sent
from p4native.common.files import read_bytes
from p4native.stf import (
    Binder,
    Command,
    Expect,
    Library,
    Mismatch,
    Packet,
    Run,
    StfError,
    parse,
)
from p4native.stf.described import described, described_nibbles, differing
from p4native.switch import Pipeline

LINES_MAX = 12


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
    replay = f"{launcher('p4native-stf')} {files}"
    pipeline = Pipeline.load(json, quick=True)
    try:
        switch = Watched(pipeline, list(_cells(case, binder)))
        run = Run(binder, switch)
        run.execute(commands)
    except StfError as error:
        lacking = f"{case.path.name}, line {error.line}: {error}."
        return Judged(case.id, False, (lacking,), remark=LACKING.id)
    finally:
        pipeline.close()
    if not run.failures:
        return Judged(case.id, True)
    first = _first(commands, switch.sent, run.mismatches)
    if first is None:
        lines = "\n".join(run.failures).splitlines()[:LINES_MAX]
        return Judged(case.id, False, tuple(lines), None, replay)
    packet, wrong = first
    sent = switch.sent[packet]
    story = tuple(_story(packet, sent, wrong, binder))
    remark = symptoms.remark(case, symptoms.of(sent, wrong, binder))
    return Judged(case.id, False, story, None, replay, remark)


def _cells(case: Case, binder: Binder) -> Iterator[tuple[str, str, int]]:
    """Yields the cells that a case names and the program has."""
    for text in case.registers:
        name, _, index = text.rstrip("]").partition("[")
        try:
            yield text, binder.array("register", name, 0), int(index or "0")
        except (StfError, ValueError):
            continue  # a program may have other registers than the solution


def _story(packet: int, sent: Sent, wrong: Mismatch, binder: Binder) -> Iterator[str]:
    """Yields lines about the first packet after which something else came than expected. packet:
    how many packets came before it."""
    if packet:
        yield f"After {packet} packet{'s' * (packet > 1)}:"
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


def _expectation(binder: Binder, wrong: Mismatch, sent: bytes) -> str:
    if wrong.expect is None:
        return f"nothing from port {wrong.port}"
    nibbles = wrong.expect.nibbles or ""
    if not nibbles.strip("*"):
        return f"from port {wrong.port}: any packet"
    alike = wrong.frame or sent
    return f"from port {wrong.port}: {described_nibbles(binder, nibbles, alike)}"


def _first(
    commands: Sequence[Command], sent: Sequence[Sent], mismatches: Sequence[Mismatch]
) -> tuple[int, Mismatch] | None:
    """Returns the mismatch that shows first, with the number of the packet that shows it; None if
    there is none. Of those that one packet shows, one that lacks something goes first. A packet
    that came belongs to the packet that caused it, and an expected one at the latest to the packet
    before it in the script."""
    places: dict[int, list[int]] = {}
    causes: dict[int, list[int]] = {}
    packets = 0
    for command in commands:
        packets += isinstance(command, Packet)
        if isinstance(command, Expect):
            places.setdefault(command.port, []).append(max(0, packets - 1))
    for index, each in enumerate(sent):
        for port, _ in each.came:
            causes.setdefault(port, []).append(index)
    shown = []
    for wrong in mismatches:
        numbers = [causes[wrong.port][wrong.number]] if wrong.frame is not None else []
        numbers += [places[wrong.port][wrong.number]] if wrong.expect is not None else []
        shown.append((min(numbers), wrong))
    return min(shown, key=lambda each: (each[0], each[1].expect is None), default=None)
