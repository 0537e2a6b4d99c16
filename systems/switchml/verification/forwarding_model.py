"""A model of how a switch forwards frames that do not belong to an aggregation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agglab.systems.switchml.verification.packets import (
    AGGREGATOR_MAC,
    ONES,
    addresses,
)

Out = tuple[int, bytes]
"""A port, and the frame that leaves through it."""


@dataclass(frozen=True)
class Forwarding:
    """What one switch knows for forwarding. ports: the port of each MAC address. routes: the MAC
    address and the port of each IPv4 address. flooded: the ports to which frames for unknown MAC
    addresses are sent. owners: the IPv4 address of the host behind each port."""

    ports: Mapping[bytes, int]
    routes: Mapping[bytes, tuple[bytes, int]]
    flooded: tuple[int, ...]
    owners: Mapping[int, bytes]

    def forged(self, port: int, frame: bytes) -> bool:
        """Returns whether a host has sent the frame with another host's source address."""
        source, _, _ = addresses(frame)
        return bool(source) and source != self.owners.get(port, source)

    def routable(self, frame: bytes) -> bool:
        """Returns whether the switch sends a frame on. It drops only frames to its own MAC address
        that are not IPv4, whose target it does not know, or whose time to live is over."""
        if frame[:6] != AGGREGATOR_MAC:
            return True
        return frame[12:14] == b"\x08\0" and frame[22] > 1 and frame[30:34] in self.routes

    def outs(self, port: int, frame: bytes) -> list[Out]:
        """Returns the frames that leave because of a routable frame."""
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
        # The checksum grows by what the time to live lost (RFC 1141), modulo 2^16 - 1.
        grown = (int.from_bytes(frame[24:26], "big") + 0x0100) % ONES
        routed[24:26] = grown.to_bytes(2, "big")
        return port, bytes(routed)
