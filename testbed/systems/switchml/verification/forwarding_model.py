"""A model of how a switch forwards frames that have nothing to do with aggregation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agglab.testbed.systems.switchml.verification.packets import (
    AGGREGATOR_MAC,
    IP_AT,
    ONES,
    UDP_AT,
    addresses,
    ones_sum,
)

Out = tuple[int, bytes]
"""A port and the frame that leaves by it."""


@dataclass(frozen=True)
class Forwarding:
    """ports: MAC address -> port; routes: IPv4 address -> (MAC address, port); flooded: ports of
    what is for nobody known; owners: port -> IPv4 address of the host behind it."""

    ports: Mapping[bytes, int]
    routes: Mapping[bytes, tuple[bytes, int]]
    flooded: tuple[int, ...]
    owners: Mapping[int, bytes]

    def forged(self, port: int, frame: bytes) -> bool:
        """Whether a host has sent it under another's address."""
        source, _, _ = addresses(frame)
        return bool(source) and source != self.owners.get(port, source)

    def routable(self, frame: bytes) -> bool:
        """Whether a frame is sent on: to a MAC address always, through the switch's own where the
        target is known and the frame may still live."""
        if frame[:6] != AGGREGATOR_MAC:
            return True
        return frame[12:14] == b"\x08\0" and frame[22] > 1 and frame[30:34] in self.routes

    def outs(self, port: int, frame: bytes) -> list[Out]:
        """Returns the frames that leave for a routable frame."""
        if frame[:6] == AGGREGATOR_MAC:
            return [self._routed(frame)]
        to = self.ports.get(frame[:6])
        if to is not None:
            return [(to, frame)]
        return [(each, frame) for each in self.flooded if each != port]

    def _routed(self, frame: bytes) -> Out:
        mac, port = self.routes[frame[30:34]]
        routed = bytearray(mac + AGGREGATOR_MAC + frame[12:])
        routed[22] -= 1
        if frame[14] & 0x0F == 5:
            routed[24:26] = b"\0\0"
            routed[24:26] = (ONES - ones_sum(routed[IP_AT:UDP_AT])).to_bytes(2, "big")
        return port, bytes(routed)
