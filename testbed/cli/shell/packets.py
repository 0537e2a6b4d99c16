"""The packets of a network in virtual time, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agglab.testbed.virtual import VirtualBackend


class Packets:
    """Stops time when enough packets have arrived. Each arrival at a node counts. words: returns a
    packet in words, as a switch's program reads it."""

    def __init__(self, backend: VirtualBackend, words: Callable[[str, bytes], str]) -> None:
        self.arrived = 0
        """How many have arrived since the beginning."""
        self._backend, self._words = backend, words
        self._stops = False
        self._last: tuple[str, bytes] | None = None
        self._ends = {
            name: (sender.node, receiver.node)
            for link in backend.topology.links
            for name, sender, receiver, _ in link.directions()
        }
        self.places = {*self._ends, *(node for ends in self._ends.values() for node in ends)}
        """The directions of links, and the nodes."""
        self._switches = {switch.name for switch in backend.topology.switches}
        self._sent = self._sent_by_switches()
        backend.tap(self._heard)

    def _heard(self, direction: str, frame: bytes) -> None:
        self.arrived += 1
        if self._stops:
            self._last = direction, frame
            self._backend.halt()

    @contextmanager
    def one(self) -> Iterator[Callable[[], bool]]:
        """Makes time stop after the next packet in the context. Yields a function that returns
        whether it has arrived."""
        self._stops, self._last = True, None
        self._sent = self._sent_by_switches()
        try:
            yield lambda: self._last is not None
        finally:
            self._stops = False

    @property
    def last_places(self) -> tuple[str, ...]:
        """The direction of the packet that has arrived in the last context `one`, and the node at
        which it arrived."""
        return () if self._last is None else (self._last[0], self._ends[self._last[0]][1])

    def told(self) -> str:
        """Returns a line about that packet and what the switch has sent because of it; empty if
        none has arrived."""
        if self._last is None:
            return ""
        direction, frame = self._last
        sender, receiver = self._ends[direction]
        switch = receiver if receiver in self._switches else sender
        words = self._words(switch, frame) if switch in self._switches else frame.hex()
        line = f"{self._backend.now_ns() / 1e6:.3f} ms  {sender} -> {receiver}: {words}"
        return line if receiver != switch else f"{line}\n          {self._answer(switch)}"

    def _answer(self, switch: str) -> str:
        """Returns to which neighbours a switch has sent since then."""
        now = self._sent_by_switches()[switch]
        before = self._sent[switch]
        to = [self._ends[name][1] for name in now if now[name] > before.get(name, 0)]
        return f"{switch} sends to {', '.join(to)}" if to else f"{switch} sends nothing"

    def _sent_by_switches(self) -> dict[str, dict[str, int]]:
        """Returns for each switch how many frames it has sent in each direction."""
        nodes = self._backend.statistics().nodes
        return {each.name: dict(each.sent) for each in nodes if each.name in self._switches}
