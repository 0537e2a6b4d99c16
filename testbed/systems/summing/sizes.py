"""Sizes of the packets of a system whose switches sum in slots. All packets have a header, followed
by a chunk's values, by the two shapes of an OPENING or, in some systems, by nothing."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.hosts.wire import LOWER_HEADER_BYTES, SHAPE_BYTES, VALUE_BYTES


@dataclass(frozen=True)
class Sizes:
    """header_bytes: the length of the system's own header, which begins with that of
    docs/protocol.md."""

    header_bytes: int

    @property
    def bare(self) -> int:
        """Returns the bytes of an Ethernet frame with headers alone, without its checksum."""
        return LOWER_HEADER_BYTES + self.header_bytes

    @property
    def opening(self) -> int:
        """Returns the same for an OPENING."""
        return self.bare + 2 * SHAPE_BYTES

    def full(self, lanes: int) -> int:
        """Returns the same for a packet that carries a chunk."""
        return self.bare + VALUE_BYTES * lanes
