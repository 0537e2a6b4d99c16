"""Implements one direction of a link in virtual time: a queue, a rate, a delay, and the impairments
at its end (native/link.c)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from agglab.testbed.base.traffic_counters import DirectionStatistics
from agglab.testbed.run.impairments import Decider, deciders
from agglab.testbed.run.samples import Row
from agglab.testbed.virtual import native
from agglab.testbed.virtual.clock import ARRIVED, FRAME, Clock
from agglab.topologies import Direction
from agglab.topologies.graph import DEFAULT_QUEUE_PACKETS

NS_PER_US = 1000


class _Counts(ctypes.Structure):
    """The fields of `struct counts` of native/link.h."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            *("packets", "bytes", "seen", "refused", "dropped", "corrupted", "lost", "copied"),
            *("held", "handed_over", "in_flight", "numbers"),
        )
    ]


class _Settings(ctypes.Structure):
    """The fields of `struct link_settings`."""

    _fields_ = [
        (name, ctypes.c_uint64) for name in ("rate_bps", "delay_ns", "queue_bytes", "queue_packets")
    ]


class _Look(ctypes.Structure):
    """The fields of `struct look` of native/link.h."""

    _fields_ = [
        (name, ctypes.c_uint64) for name in ("carried_bytes", "waiting_packets", "waiting_bytes")
    ]


class LinkDirection:
    """One direction of a link. deliver: a function that is called with each frame at the far end,
    unless the direction ends at a node in C. address: the address of its `struct link`."""

    def __init__(
        self,
        clock: Clock,
        seed: int,
        link: str,
        name: str,
        direction: Direction,
        deliver: Callable[[bytes], None] | None = None,
    ) -> None:
        self.link, self.name = link, name
        self._clock, self._direction = clock, direction
        self._library = clock.library
        packets = 0 if direction.queue_bytes else direction.queue_packets or DEFAULT_QUEUE_PACKETS
        settings = _Settings(
            direction.rate_bps or 0,
            direction.delay_us * NS_PER_US,
            direction.queue_bytes or 0,
            packets,
        )
        self.address: int = self._library.link_new(clock.address, ctypes.byref(settings), id(self))
        if not self.address:
            raise MemoryError
        self._counts = _Counts.from_address(self.address)
        self._constant = deciders(direction.impairments, seed, link, name)
        self._begun: dict[int, Decider] = {}
        self._reconsider()
        if deliver is not None:
            clock.answer(FRAME, id(self), lambda _, frame: deliver(frame))

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self._library.link_free(self.address)

    def end_at(self, receive: object, node: int, port: int) -> None:
        """Makes the direction end at a port of a node in C. receive: the library's function that
        takes the frames."""
        self._library.link_to(self.address, native.address_of(receive), node, port)

    def tap(self, told: Callable[[bytes], None]) -> None:
        """Calls `told` with each frame before it is delivered."""
        self._clock.answer(ARRIVED, id(self), lambda _, frame: told(frame))
        self._library.link_tap(self.address)

    def send(self, frame: bytes) -> None:
        """Appends a frame to the queue, or drops it if the queue is full."""
        self._library.link_send_copy(self.address, frame, len(frame))

    def take_down(self) -> None:
        """Makes the direction lose all frames until `bring_up`. Frames that are sent meanwhile
        still take transmission time."""
        self._library.link_down(self.address, 1)

    def bring_up(self) -> None:
        """Ends the effect of `take_down`, so that frames arrive again."""
        self._library.link_down(self.address, -1)

    def change_rate(self, rate_bps: int | None) -> None:
        """Changes the rate for frames whose transmission has not begun. The current frame keeps its
        rate. None restores the rate of the topology."""
        rate = self._direction.rate_bps if rate_bps is None else rate_bps
        self._library.link_change_rate(self.address, rate or 0)

    def impair(self, number: int, decider: Decider) -> None:
        """Begins an impairment that the fault with this number makes. If several faults have
        impairments here, the one with the lowest number decides first."""
        self._begun[number] = decider
        self._reconsider()

    def end_impairment(self, number: int) -> None:
        """Ends the impairment of the fault with this number."""
        del self._begun[number]
        self._reconsider()

    def _reconsider(self) -> None:
        self._deciders = self._constant + [self._begun[n] for n in sorted(self._begun)]
        addresses = [decider.address for decider in self._deciders]
        self._addresses = (ctypes.c_void_p * len(addresses))(*addresses)
        self._library.link_impair(self.address, self._addresses, len(addresses))

    def _look(self) -> _Look:
        look = _Look()
        self._library.link_look(self.address, ctypes.byref(look))
        return look

    def carried_bytes(self) -> int:
        """Returns the bytes of the frames that have been sent completely."""
        return self._look().carried_bytes

    def look(self) -> Row:
        """Returns a row of series.tracks.LINK, with what has been counted so far and what waits in
        the queue now."""
        seen, refused = self._look(), self._counts.refused
        carried, packets, waiting = seen.carried_bytes, seen.waiting_packets, seen.waiting_bytes
        return self._clock.now_ns, carried, refused, packets, waiting

    def _dropped_numbers(self) -> tuple[int, ...]:
        if not self._counts.numbers:
            return ()
        where = self._library.link_dropped_numbers(self.address)
        return tuple((ctypes.c_uint64 * self._counts.numbers).from_address(where))

    def statistics(self) -> DirectionStatistics:
        """Returns the counts so far."""
        counts = self._counts
        return DirectionStatistics(
            link=self.link,
            direction=self.name,
            packets=counts.packets,
            bytes=counts.bytes,
            seen=counts.seen,
            dropped_injected=counts.dropped,
            dropped_by_queue=counts.refused,
            dropped_numbers=self._dropped_numbers(),
            corrupted=counts.corrupted,
            lost_link_down=counts.lost,
            duplicated=counts.copied,
            in_flight=counts.in_flight,
            held=counts.held,
            handed_over=counts.handed_over,
        )
