"""Judges a case that sends packets to the program (STF), and tells what went wrong by the packet
that showed it: what was sent, what had to come, and what came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agglab.switch import Pipeline, PipelineError
from agglab.switch.files import read_bytes
from agglab.testbed.command_lines import module
from agglab.verification.grading.described import described, described_nibbles, path_on_a_shell
from agglab.verification.grading.lab import Case
from agglab.verification.grading.result import Judged
from agglab.verification.stf import Binder, Command, Expect, Library, Packet, Run, StfError, parse

Frames = list[tuple[int, bytes]]
LINES_MAX = 12


@dataclass
class Sent:
    """One packet of a script. came: what the program sent because of it. before, after: the cells
    that the case names."""

    packet: Packet
    came: Frames = field(default_factory=list)
    expected: list[Expect] = field(default_factory=list)
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """Whether exactly the expected packets came, on each port in the order of the script."""
        ports = {port for port, _ in self.came} | {each.port for each in self.expected}
        return all(self._is_right_at(port) for port in ports)

    def _is_right_at(self, port: int) -> bool:
        expected = [each for each in self.expected if each.port == port]
        came = [frame for at, frame in self.came if at == port]
        if any(each.nibbles is None for each in expected):
            return bool(came)
        pairs = zip(expected, came, strict=False)
        return len(expected) == len(came) and all(e.matches(frame) for e, frame in pairs)


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
        packet = Packet(0, port, frame)
        self.sent.append(Sent(packet, self.out[came:], [], before, self._values()))

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
    """Yields lines about the first packet after which something else came than expected. If the
    packets were right one by one, yields the script's own failures."""
    number = -1
    for command in commands:
        if isinstance(command, Packet):
            number += 1
        elif isinstance(command, Expect) and number >= 0:
            switch.sent[number].expected.append(command)
    wrong = next((each for each in switch.sent if not each.is_right), None)
    if wrong is None:
        yield from "\n".join(run.failures).splitlines()[:LINES_MAX]
        return
    if at := switch.sent.index(wrong):
        yield f"After {at} packet{'s' * (at > 1)} with the right answers:"
    yield f"  sent to port {wrong.packet.port}: {described(binder, wrong.packet.data)}"
    for expect in wrong.expected[:LINES_MAX]:
        yield f"  expected {_expectation(binder, expect)}"
    if not wrong.expected:
        yield "  expected nothing"
    for port, frame in wrong.came[:LINES_MAX]:
        yield f"  came     from port {port}: {described(binder, frame)}"
    if len(wrong.came) > LINES_MAX:
        yield f"  came     {len(wrong.came)} packets in all"
    if not wrong.came:
        yield "  came     nothing"
    for cell, before in wrong.before.items():
        yield f"  {cell} was {before}, and is {wrong.after[cell]}"


def _expectation(binder: Binder, expect: Expect) -> str:
    if expect.nibbles is None:
        return f"from port {expect.port}: any packet"
    return f"from port {expect.port}: {described_nibbles(binder, expect.nibbles)}"
