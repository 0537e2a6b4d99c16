"""A packet on its way through the switch: its bytes, its metadata, and the program's requests to
copy or truncate it."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4native.verification.interpreter.values import Record

DROP_PORT = 511
NO_FIELDS = -1
"""The value that stands for no list of fields."""


@dataclass
class Copy:
    """A requested clone, resubmission or recirculation. session: the clone session. fields: the
    number of the list of metadata fields that the copy keeps."""

    session: int
    fields: int


@dataclass
class Packet:
    """A packet. at_bit: the position of the parser in the frame. truncate_bytes: the length to
    which the packet is cut when it leaves."""

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
    """The (bits, value) of each part that the deparser has emitted."""

    def bits_left(self) -> int:
        """Returns how many bits the parser has not read yet."""
        return 8 * len(self.frame) - self.at_bit

    def ahead(self, bits: int) -> int:
        """Returns the next `bits` bits as an unsigned number. At least that many bits must be
        left."""
        below = self.bits_left() - bits
        return int.from_bytes(self.frame, "big") >> below & (1 << bits) - 1

    def emit(self, bits: int, value: int) -> None:
        """Appends a value of `bits` bits to the packet that leaves."""
        self.out.append((bits, value))

    def emitted(self) -> bytes:
        """Returns the emitted bits as bytes."""
        bits = value = 0
        for more, below in self.out:
            bits, value = bits + more, value << more | below
        return (value << -bits % 8).to_bytes((bits + 7) // 8, "big")
