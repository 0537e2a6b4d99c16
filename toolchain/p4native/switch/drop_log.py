"""Writes to the switch's log when packets are lost for the first time, why, and what helps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

PERIOD_S = 0.5
OF_PORT = {
    "ring_drops": "the receive ring was full: a larger --ring-frames holds longer bursts",
    "rx_truncated": "a frame was longer than 65553 bytes",
    "rx_gso_drops": "a buffer of several packets could not be cut; let the sender cut it:"
    " ethtool -K INTERFACE gso off tso off tx-udp_tnl-segmentation off"
    " tx-udp_tnl-csum-segmentation off tx-gre-segmentation off",
    "tx_drops": "the interface's queue was full: the link is slower than the packets for it",
    "tx_oversize": "a packet was longer than the MTU: ip link set INTERFACE mtu BYTES",
    "tx_errors": "the interface was down or gone, or a packet was empty",
}
OF_SWITCH = {
    "no_port_drops": "the program sent it to a port without an interface; give one with -i",
    "pcap_errors": "it could not be written to a capture; is the disk full?",
}
# The program's own drops, in ingress and egress, are no losses.
OF_PROGRAM = {
    "loop": "it was resubmitted, recirculated or cloned without end",
    "recirculation_full": "too many recirculated packets were waiting",
    "no_group": "its multicast group does not exist; write it over P4Runtime",
    "no_session": "the clone session for a copy of it does not exist; write it over P4Runtime",
    "priority": "the program gave it a priority for which --priority-queues has no queue",
    "no_room": "the buffer for outgoing packets was full",
    "too_long": "it was longer than 65535 bytes, or was recirculated and became too long",
    "digest": "samples of a digest waited, and nobody took them",
}


class DropLog:
    """A thread that reads the statistics and writes one line for each counter of lost packets that
    rises for the first time.

    read: returns the statistics of `PacketLoop.stats()`. write: takes a line.
    """

    def __init__(self, read: Callable[[], Mapping[str, Any]], write: Callable[[str], None]) -> None:
        self._read, self._write = read, write
        self._known: set[tuple[str, str]] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> DropLog:
        """Starts reading."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Writes what is not yet written, and stops."""
        self._stopping.set()
        self._thread.join()

    def look(self) -> None:
        """Writes the lines of all counters that have risen since the last time."""
        for place, counter, line in _losses(self._read()):
            if (place, counter) not in self._known:
                self._known.add((place, counter))
                self._write(f"{place}: {line} (counted as {counter}; said once)")

    def _run(self) -> None:
        while not self._stopping.wait(PERIOD_S):
            self.look()
        self.look()


def _losses(statistics: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields (place, counter, reason with remedy) of each counter of lost packets above 0."""
    for number, counts in statistics["ports"].items():
        place = f"port {number} ({counts['interface']}): a packet was lost"
        for counter, reason in OF_PORT.items():
            if counts[counter]:
                yield place, counter, reason.replace("INTERFACE", counts["interface"])
    for known, counts in (
        (OF_SWITCH, statistics),
        (OF_PROGRAM, statistics["pipeline_drops"]),
    ):
        for counter, reason in known.items():
            if counts.get(counter):
                yield "a packet was lost", counter, reason
