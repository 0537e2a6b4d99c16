"""One packet on its way through the switch: its bytes, its metadata, and what was asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from agglab.verification.interpreter.values import Record

DROP_PORT = 511
NO_FIELDS = -1
"""In place of the number of a list of fields."""


@dataclass
class Copy:
    """A copy that was asked for: a clone to a session, or the packet itself once more. fields: the
    number of the list of metadata that goes along."""

    session: int
    fields: int


@dataclass
class Packet:
    """at_bit: where the parser is. truncate_bytes: the length to which what leaves is cut."""

    frame: bytes
    port: int
    length_bytes: int
    headers: Record
    metadata: Record
    standard: Record
    at_bit: int = 0
    payload: bytes = b""
    truncate_bytes: int | None = None
    clone: Copy | None = None
    resubmit: Copy | None = None
    recirculate: Copy | None = None
    out: list[tuple[int, int]] = field(default_factory=list)
    """(bits, value) of what the deparser has emitted."""

    def bits_left(self) -> int:
        """How many bits the parser has not seen yet."""
        return 8 * len(self.frame) - self.at_bit

    def ahead(self, bits: int) -> int:
        """The next bits as an unsigned number; as many have to be left."""
        below = self.bits_left() - bits
        return int.from_bytes(self.frame, "big") >> below & (1 << bits) - 1

    def emit(self, bits: int, value: int) -> None:
        """Adds bits to what leaves."""
        self.out.append((bits, value))

    def emitted(self) -> bytes:
        """Returns what has been emitted as bytes."""
        bits = value = 0
        for more, below in self.out:
            bits, value = bits + more, value << more | below
        return (value << -bits % 8).to_bytes((bits + 7) // 8, "big")
