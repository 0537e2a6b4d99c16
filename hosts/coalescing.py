"""Estimates how long to let results gather before they are received (native/coalescing.h). This
module imports only the loader of the C library and native_structures.py."""

from __future__ import annotations

from agglab.hosts import library
from agglab.hosts.native_structures import Coalescing

COALESCE_MAX_NS = 1_000_000
"""The longest time for which results wait for other results. docs/hosts.md says what this gains."""


class ReceiveCoalescing:
    """An estimate of how long to let results gather before the next receive call.

    The estimate is the time in which a quarter of the packets in flight is answered, at the recent
    rate. So some packets are always in flight while the worker waits. If the link carries several
    results as one buffer (docs/network.md), results gather for at most a full buffer, and only
    after a batch that was smaller than that.

    buffer_packets: the number of packets in a full buffer; 1 if each packet crosses the link by
    itself.
    """

    def __init__(self, buffer_packets: int = 1) -> None:
        self._state = Coalescing(most_ns=COALESCE_MAX_NS, buffer_packets=buffer_packets)
        self._native = library.load()
        self.address = self._state.address

    def results_arrived(self, now_ns: int, count: int) -> None:
        """Notes that `count` results arrived at `now_ns`."""
        self._native.coalescing_arrived(self.address, now_ns, count)

    def wait_ns(self, in_flight: int) -> int:
        """Returns how long to let results gather before the next receive call. in_flight: the
        number of packets in flight."""
        wait_ns: int = self._native.coalescing_wait_ns(self.address, in_flight)
        return wait_ns
