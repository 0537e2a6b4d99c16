"""What a switch is given, what it is sent, and what has to come of it: for our switch, or as a
packet script for any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tables import Setup, lines

AT_ONCE = 25
"""An egress queue of BMv2 holds 64 packets."""


@dataclass(frozen=True)
class Step:
    """A frame that comes in by a port, and all that leaves for it: (port, frame). comes_again: it
    goes through the switch more than once, so nothing else is sent meanwhile."""

    port: int
    frame: bytes
    out: Sequence[tuple[int, bytes]] = ()
    comes_again: bool = False


@dataclass(frozen=True)
class Conversation:
    """counters: what they are in the end, by "name(index)". at_once: packets sent before what they
    cause is awaited; 1 where it is not known which of them come again. reached: the rare states
    that the model was in (Rules.rare)."""

    setup: Setup
    steps: Sequence[Step]
    counters: Mapping[str, int] = field(default_factory=dict)
    at_once: int = AT_ONCE
    reached: frozenset[str] = frozenset()

    def script(self) -> Iterator[str]:
        """Lines of a packet script."""
        yield from lines(self.setup)
        for number, step in enumerate(self.steps, 1):
            yield f"packet {step.port} {step.frame.hex()}"
            for port, frame in step.out:
                yield f"expect {port} {frame.hex()} $"
            if step.comes_again or number % self.at_once == 0:
                yield "wait"
        for counter, packets in self.counters.items():
            yield f"check_counter {counter} packets == {packets}"
