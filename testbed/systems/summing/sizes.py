"""The sizes of the packets of a system whose switches sum in slots. Each packet has a header. What
follows the header is a chunk's values, the two shapes of an OPENING or, in some systems, nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from agglab.hosts.wire import LOWER_HEADER_BYTES, SHAPE_BYTES, VALUE_BYTES


@dataclass(frozen=True)
class Sizes:
    """The sizes of a system's packets, as Ethernet frames without their checksums. header_bytes:
    the length of the system's own header, which begins with that of docs/protocol.md."""

    header_bytes: int

    @property
    def bare(self) -> int:
        """The bytes of a packet with headers alone."""
        return LOWER_HEADER_BYTES + self.header_bytes

    @property
    def opening(self) -> int:
        """The bytes of an OPENING."""
        return self.bare + 2 * SHAPE_BYTES

    def full(self, lanes: int) -> int:
        """Returns the bytes of a packet that carries a chunk."""
        return self.bare + VALUE_BYTES * lanes
