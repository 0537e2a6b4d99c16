"""Performs an application's call with keys. First, the worker asks the server for places that it
does not know. Then the switch performs the method for the keys that have a place, and the server
performs it for the other keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from agglab.systems.netrpc import key_places
from agglab.systems.netrpc.caller import Caller
from agglab.systems.netrpc.key_places import Packet, PlaceCache
from agglab.systems.netrpc.service import Map, Method
from agglab.systems.netrpc.stubs import MapAccess
from agglab.systems.netrpc.wire import KEPT, KEY, PAIR, Kind

PLACE_VALUES = Method(Kind.KEYS, get=True, number=0, name="place_values")
PLACE_COUNTERS = Method(Kind.KEYS, get=True, number=1, name="place_counters")
"""The methods that a server has besides those of the service: it tells places."""


class CallPositions(NamedTuple):
    """The positions of a caller that certain calls may use: those from `first` on."""

    caller: Caller
    first: int


class MapOperation:
    """The operation that performs a stubs.MapAccess. values, counters: the places of values and of
    counters that the worker knows."""

    def __init__(
        self,
        switch: CallPositions,
        server: CallPositions,
        values: PlaceCache,
        counters: PlaceCache,
        wanted: MapAccess,
    ) -> None:
        self.result: Any = None
        self._wanted = wanted
        counts = wanted.method.counts
        self._cache = counters if counts else values
        self._found = np.zeros(wanted.keys.size, np.uint32)
        unknown = self._cache.unknown(wanted.keys)
        ask = PLACE_COUNTERS if counts else PLACE_VALUES
        packets = key_places.in_keys(
            unknown, np.zeros(unknown.size, np.uint32), np.arange(unknown.size)
        )
        self._switch, self._server = switch, server
        self._lookups = _Queue(server, ask, Kind.KEYS, Kind.KEYS, packets)
        self._queues = [] if unknown.size else list(self._calls())

    def step(self) -> bool:
        return self._looked_up() and self._called()

    def _looked_up(self) -> bool:
        """Returns whether the places of all keys are known. Takes answers, and asks for places."""
        if self._queues:
            return True
        for body, _ in self._lookups.step():
            entries = np.frombuffer(body, KEY)
            self._cache.learn(entries[entries["place"] != key_places.UNUSED])
        if not self._lookups.done:
            return False
        self._queues = list(self._calls())
        return True

    def _called(self) -> bool:
        """Returns whether all calls are answered. Takes answers, and makes the calls."""
        for queue in self._queues:
            for body, packet in queue.step():
                self._take(queue, body, packet)
        if not all(queue.done for queue in self._queues):
            return False
        self.result = self._results()
        return True

    def _calls(self) -> Iterator[_Queue]:
        keys, values, declared = self._wanted.keys, self._wanted.values, self._wanted.method
        at = self._cache.of(keys)
        placed, kept = np.flatnonzero(at != KEPT), np.flatnonzero(at == KEPT)
        if declared.counts:
            packets = key_places.one_by_one(at[placed], placed)
        else:
            packets = key_places.in_pairs(at[placed], values[placed], placed)
        yield _Queue(self._switch, declared, Map, declared.answer, packets)
        packets = key_places.in_keys(keys[kept], values[kept], kept)
        yield _Queue(self._server, declared, Kind.KEYS, Kind.KEYS, packets)

    def _take(self, queue: _Queue, body: bytes, packet: Packet) -> None:
        """Takes the results for the keys of one packet from the body of its answer."""
        if queue.answer == Kind.NOTHING:
            self._found[packet.indices] = queue.count
            return
        entries = np.frombuffer(body, KEY if queue.answer == Kind.KEYS else PAIR)
        self._found[packet.indices] = entries["value"][packet.entries]

    def _results(self) -> Any:
        declared = self._wanted.method
        if declared.get:
            return self._found
        if declared.forward is not None:
            return self._found == declared.forward.threshold
        return None


class _Queue:
    """Calls of one method to one peer that are still to be made or answered. As many are in flight
    as there are positions."""

    def __init__(
        self,
        positions: CallPositions,
        declared: Method,
        kind: Kind,
        answer: Kind,
        packets: Iterator[Packet],
    ) -> None:
        self.answer = answer
        self.count = 0
        """The counter in the answer that `step` yielded last."""
        self._positions, self._method, self._kind = positions, declared, kind
        self._packets = packets
        self._flying: dict[int, Packet] = {}
        self._free = list(range(positions.caller.window - 1, positions.first - 1, -1))
        self._last = False

    @property
    def done(self) -> bool:
        return self._last and not self._flying

    def step(self) -> Iterator[tuple[bytes, Packet]]:
        """Yields the answers that have come, each with the packet that it answers. Then sends calls
        at all free positions."""
        caller = self._positions.caller
        waiting = caller.calls["waiting"]
        for position in [p for p in self._flying if not waiting[p]]:
            self.count = int(caller.calls["count"][position])
            yield caller.answer(position, self.answer), self._flying.pop(position)
            self._free.append(position)
        while self._free and not self._last:
            packet = next(self._packets, None)
            if packet is None:
                self._last = True
                return
            position = self._free.pop()
            caller.post(position, self._method, self._kind, self.answer, packet.body)
            self._flying[position] = packet
