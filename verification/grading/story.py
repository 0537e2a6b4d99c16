"""Tells what happened to the packets of a run in virtual time, from the frames that its switches
have processed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from agglab.topologies import Topology
from p4native.stf import Binder
from p4native.stf.described import described

FIRST, LAST = 4, 6
"""How many steps of a long run are told: those at its beginning, and those at its end."""


@dataclass(frozen=True)
class Step:
    """One frame that a switch has processed, and the (port, frame) of each that it sent."""

    switch: str
    time_ns: int
    port: int
    frame: bytes
    sent: tuple[tuple[int, bytes], ...]


class Observed:
    """The steps of a run, in their order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(
        self,
        switch: str,
        now_ns: int,
        port: int,
        frame: bytes,
        sent: Sequence[tuple[int, bytes]],
    ) -> None:
        self.steps.append(Step(switch, now_ns, port, frame, tuple(sent)))


class Teller:
    """Turns the steps of a run into lines."""

    def __init__(
        self, graph: Topology, binder: Binder, dropped: Mapping[str, Sequence[int]]
    ) -> None:
        """dropped: the numbers of the frames that each direction of a link lost."""
        self._binder = binder
        self._dropped = {direction: set(numbers) for direction, numbers in dropped.items()}
        self._switches = {switch.name for switch in graph.switches}
        self._beyond: dict[tuple[str, int], str] = {}
        for link in graph.links:
            for _, near, far, _ in link.directions():
                self._beyond[near.node, near.port] = far.node
        self._counts: dict[str, int] = {}
        self._sent_before: set[tuple[str, bytes]] = set()

    def lines(self, steps: Sequence[Step]) -> list[str]:
        """Returns lines for the packets that come to a switch, and for what the switch sends. If
        the last packet had come before, only it and its repeats are told."""
        packets = [tuple(self._step(step)) for step in steps]
        repeated = [n for n, step in enumerate(steps) if step.frame == steps[-1].frame]
        if len(repeated) > 1 and len(packets) > FIRST + LAST:
            return [
                _left_out(len(packets) - len(repeated)),
                *_collapsed([packets[n] for n in repeated]),
            ]
        if len(packets) > FIRST + LAST:
            left_out = (_left_out(len(packets) - FIRST - LAST),)
            packets = [*packets[:FIRST], left_out, *packets[-LAST:]]
        return [line for lines in packets for line in lines]

    def _step(self, step: Step) -> Iterator[str]:
        sender = self._beyond.get((step.switch, step.port), f"port {step.port}")
        if sender not in self._switches:
            yield from self._lost_before(sender, step.switch)
            again = ", again" if (sender, step.frame) in self._sent_before else ""
            self._sent_before.add((sender, step.frame))
            shown = described(self._binder, step.frame)
            yield f"  {step.time_ns / 1e6:.3f} ms, {sender} -> {step.switch}{again}: {shown}"
        yield f"      {step.switch} sends {self._answer(step)}"

    def _lost_before(self, sender: str, switch: str) -> Iterator[str]:
        """Yields a line for each frame of this direction that was lost before the next one."""
        direction = f"{sender}->{switch}"
        while self._counts.setdefault(direction, 0) in self._dropped.get(direction, ()):
            self._counts[direction] += 1
            yield f"      a packet from {sender} to {switch} is lost"
        self._counts[direction] += 1

    def _answer(self, step: Step) -> str:
        if not step.sent:
            return "nothing"
        copies: dict[bytes, list[str]] = {}
        for port, frame in step.sent:
            name = self._beyond.get((step.switch, port), f"port {port}, where nothing is")
            copies.setdefault(frame, []).append(name + self._fate(step.switch, name))
        return "; ".join(
            f"it to {' and '.join(names)}"
            if frame == step.frame
            else f"to {' and '.join(names)}: {described(self._binder, frame)}"
            for frame, names in copies.items()
        )

    def _fate(self, switch: str, receiver: str) -> str:
        """Returns ` (lost)` if the next frame in this direction was lost."""
        direction = f"{switch}->{receiver}"
        number = self._counts.setdefault(direction, 0)
        self._counts[direction] += 1
        return " (lost)" if number in self._dropped.get(direction, ()) else ""


def _left_out(count: int) -> str:
    return f"  ... {count} other packets ..."


def _collapsed(packets: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yields the first packet, and of those that followed and had the same outcome only the
    first."""
    yield from packets[0]
    for outcome, group in groupby(packets[1:], key=lambda lines: lines[-1]):
        alike = [*group]
        yield from alike[0][:-1]
        more = f" (and so {len(alike) - 1} more times)" if len(alike) > 1 else ""
        yield f"{outcome}{more}"
