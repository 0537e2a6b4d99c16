"""Sizes of the packets of a system whose switches sum in slots. All of them have a header, after
which come a chunk's values, or the two shapes of an OPENING, or, in some systems, nothing."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.hosts.wire import LOWER_HEADER_BYTES, SHAPE_BYTES, VALUE_BYTES


@dataclass(frozen=True)
class Sizes:
    """header_bytes: of the system's own header, which begins with that of docs/protocol.md."""

    header_bytes: int

    @property
    def bare(self) -> int:
        """Bytes of the Ethernet frame, without its checksum, of headers alone."""
        return LOWER_HEADER_BYTES + self.header_bytes

    @property
    def opening(self) -> int:
        """The same of an OPENING."""
        return self.bare + 2 * SHAPE_BYTES

    def full(self, lanes: int) -> int:
        """The same of a packet that carries a chunk."""
        return self.bare + VALUE_BYTES * lanes
