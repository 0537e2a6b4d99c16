"""The wire format that docs/protocol.md describes. It is defined only here, and the header for the
C code is generated from it.

There are two levels. `Batch` holds the UDP payloads of many packets in one buffer, and has their
checked fields as arrays. `Chunk` is one packet as an immutable value, with `parse` and `emit`. This
module imports only endpoint.py and formats.py.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import formats
from agglab.hosts.endpoint import Address, Inbox

VERSION = 1
VERSION_WITH_PRESENCE = 2
"""The version of packets that say whose contributions a sum contains: `PRESENCE_BYTES` follow the
header (docs/partial-sums.md)."""
PRESENCE_BYTES = 8
AGGREGATOR_ADDRESS = "10.0.255.254"
AGGREGATOR_MAC = "02:00:00:00:ff:fe"
AGGREGATOR_PORT = 48864
AGGREGATOR: Address = (AGGREGATOR_ADDRESS, AGGREGATOR_PORT)
WORKER_PORT_BASE = 48865
"""The base of the workers' UDP ports. A worker's port is the sum of this and its job's number."""

RESULT = 0x80
"""The bit of `kind` that is set in a result and not in a contribution."""


class Kind(enum.IntEnum):
    """The type of a packet's values: bits 0-6 of the field `kind`. Only contributions have the
    narrow kinds; the results of such contributions have the kind `SCALED`."""

    INT32 = 0
    SCALED = 1
    OPENING = 2
    HALF = 3
    NARROW16 = 4
    NARROW8 = 5
    NARROW4 = 6
    BFLOAT = 7


NARROW = {16: Kind.NARROW16, 8: Kind.NARROW8, 4: Kind.NARROW4}
"""The narrow kind for each number of bits of a value in a contribution."""


HEADER = np.dtype(
    [
        ("version", "u1"),
        ("kind", "u1"),
        ("job", ">u2"),
        ("slot", ">u2"),
        ("exponent", "u1"),
        ("attempt", "u1"),
        ("tag", ">u4"),
    ]
)
"""The aggregation header. Values of type `>i4` follow it, or two shapes in an `OPENING`."""

SHAPE = np.dtype(
    [
        ("elements", ">u8"),
        ("workers", ">u4"),
        ("lanes", ">u2"),
        ("window", ">u2"),
        ("dtype", "u1"),
        ("round", "u1"),
    ]
)
"""The facts on which all workers must agree before a round. The upper 16 bits of `elements` are
the `tensors` of an Agreement, and the upper 4 bits of `dtype` are its `operation` (agreement.py).
The other bits of `dtype` are the `Kind` of the values. `round` counts modulo 256."""
ELEMENTS_BITS, DTYPE_BITS = 48, 4

HEADER_BYTES = HEADER.itemsize
SHAPE_BYTES = SHAPE.itemsize
VALUE_BYTES = 4
OPENING_BYTES = HEADER_BYTES + 2 * SHAPE_BYTES
"""The length of the UDP payload of an `OPENING`."""
LOWER_HEADER_BYTES = 14 + 20 + 8
"""The length of the headers of Ethernet, IPv4 (without options) and UDP."""
MAX_LANES = (65535 - 28 - HEADER_BYTES) // VALUE_BYTES
"""The largest number of lanes that an IPv4 packet can hold."""


def datagram_bytes(lanes: int) -> int:
    """Returns the length of the UDP payload of a packet that carries values."""
    return HEADER_BYTES + VALUE_BYTES * lanes


def longest_datagram_bytes(lanes: int) -> int:
    """Returns the length of the longest legal UDP payload."""
    return max(datagram_bytes(lanes), OPENING_BYTES)


def narrow_datagram_bytes(lanes: int) -> int:
    """Returns the length of the UDP payload of a contribution of a narrow kind."""
    return HEADER_BYTES + VALUE_BYTES * lanes // 2


def narrow_values(lanes: int, bits: int) -> int:
    """Returns the number of values in a packet of a narrow kind. A sum has twice as many bits as a
    value, and a lane has room for one or more sums."""
    return lanes * 8 * VALUE_BYTES // (2 * bits)


def frame_bytes(lanes: int) -> int:
    """Returns the length of the Ethernet frame, without its checksum, of a packet that carries
    values."""
    return LOWER_HEADER_BYTES + datagram_bytes(lanes)


def opening_frame_bytes() -> int:
    """Returns the length of the Ethernet frame, without its checksum, of an `OPENING`."""
    return LOWER_HEADER_BYTES + OPENING_BYTES


def field_bits(record: np.dtype = HEADER) -> dict[str, int]:
    """Returns the width in bits of each field of `HEADER` or `SHAPE`, in the order of the wire."""
    return {name: 8 * record[name].itemsize for name in record.names or ()}


def c_header() -> str:
    """Returns the text of a C header with the format: constants and `struct wire_header`, whose
    fields are big endian, as on the wire."""
    constants = {
        "WIRE_VERSION": VERSION,
        "WIRE_VERSION_WITH_PRESENCE": VERSION_WITH_PRESENCE,
        "WIRE_PRESENCE_BYTES": PRESENCE_BYTES,
        "WIRE_RESULT": RESULT,
        **{f"WIRE_{kind.name}": kind.value for kind in Kind},
        "WIRE_HEADER_BYTES": HEADER_BYTES,
        "WIRE_SHAPE_BYTES": SHAPE_BYTES,
        "WIRE_LOWER_HEADER_BYTES": LOWER_HEADER_BYTES,
    }
    struct = formats.c_struct("wire_header", HEADER)
    return formats.c_header("hosts/wire.py", "AGGLAB_WIRE_H", constants, struct)


class Batch(Inbox):
    """An Inbox that interprets its rows as packets of the wire format."""

    def __init__(self, capacity: int, lanes: int) -> None:
        super().__init__(capacity, longest_datagram_bytes(lanes))
        self.lanes = lanes

    @classmethod
    def of(cls, datagrams: Sequence[bytes], lanes: int) -> Batch:
        """Returns a batch that holds the given payloads."""
        batch = cls(max(1, len(datagrams)), lanes)
        batch.fill(datagrams)
        return batch

    @property
    def headers(self) -> NDArray[np.void]:
        """The rows in use as `HEADER` records. If a payload is shorter than a header, the rest of
        its record holds bytes of earlier payloads."""
        return self.buffer[: self.count, :HEADER_BYTES].view(HEADER)[:, 0]

    @property
    def values(self) -> NDArray[np.int32]:
        """The rows in use as big-endian values, of shape (count, lanes)."""
        return self.buffer[: self.count, HEADER_BYTES : datagram_bytes(self.lanes)].view(">i4")

    def well_formed(self) -> NDArray[np.bool_]:
        """Returns, for each row in use, whether the version, kind and length of its packet conform
        to the format."""
        headers, lengths = self.headers, self.lengths[: self.count]
        kinds = headers["kind"] & ~np.uint8(RESULT)
        expected = np.where(kinds == Kind.OPENING, OPENING_BYTES, datagram_bytes(self.lanes))
        is_narrow = np.isin(kinds, tuple(NARROW.values()))
        expected = np.where(is_narrow, narrow_datagram_bytes(self.lanes), expected)
        legal = (headers["version"] == VERSION) & (kinds <= max(Kind))
        is_result = headers["kind"] & np.uint8(RESULT) != 0
        legal &= ~is_narrow | (~is_result & (self.lanes % 2 == 0))
        return legal & (lengths == expected)

    def datagram(self, index: int) -> bytes:
        """Returns the UDP payload that row `index` holds."""
        return self.buffer[index, : self.lengths[index]].tobytes()


@dataclass(frozen=True)
class Shape:
    """The shape of a worker's input and settings in a round. The fields are those of `SHAPE`, with
    those of an Agreement apart."""

    elements: int
    workers: int
    lanes: int
    window: int
    dtype: int
    round: int
    operation: int = 0
    tensors: int = 0

    @classmethod
    def parse(cls, data: bytes) -> Shape:
        """Returns the Shape that `SHAPE_BYTES` bytes encode. All bytes are accepted."""
        elements, workers, lanes, window, dtype, rounds = np.frombuffer(data, SHAPE)[0].item()
        tensors, elements = divmod(elements, 1 << ELEMENTS_BITS)
        operation, dtype = divmod(dtype, 1 << DTYPE_BITS)
        return cls(elements, workers, lanes, window, dtype, rounds, operation, tensors)

    def emit(self) -> bytes:
        """Returns the bytes that encode the shape on the wire."""
        elements = self.tensors << ELEMENTS_BITS | self.elements
        dtype = self.operation << DTYPE_BITS | self.dtype
        fields = (elements, self.workers, self.lanes, self.window, dtype, self.round)
        return np.array([fields], SHAPE).tobytes()


@dataclass(frozen=True)
class Chunk:
    """One packet: a contribution, or, if `result` is true, the sum of all contributions. shapes:
    the smallest and the largest shape if the packet is an `OPENING`, otherwise empty. present: the
    workers whose contributions are in it, as bits, if the packet has the version that says so."""

    kind: Kind
    job: int
    slot: int
    tag: int
    exponent: int = 0
    values: tuple[int, ...] = ()
    shapes: tuple[Shape, ...] = ()
    result: bool = False
    attempt: int = 0
    present: int | None = None

    @classmethod
    def parse(cls, datagram: bytes, lanes: int) -> Chunk | None:
        """Returns the packet that a UDP payload encodes, for a switch program with `lanes` lanes.
        Returns None if the payload is malformed."""
        datagram, present = _without_presence(datagram)
        batch = Batch.of([datagram], lanes)
        if not batch.well_formed()[0]:
            return None
        header = batch.headers[0]
        kind = Kind(int(header["kind"]) & ~RESULT)
        fields = {name: int(header[name]) for name in ("job", "slot", "tag", "exponent", "attempt")}
        result = bool(header["kind"] & RESULT)
        values: tuple[int, ...] = ()
        shapes: tuple[Shape, ...] = ()
        if kind is Kind.OPENING:
            middle = HEADER_BYTES + SHAPE_BYTES
            shapes = Shape.parse(datagram[HEADER_BYTES:middle]), Shape.parse(datagram[middle:])
        else:
            words = (len(datagram) - HEADER_BYTES) // VALUE_BYTES
            values = tuple(batch.values[0, :words].tolist())
        return cls(kind, values=values, shapes=shapes, result=result, present=present, **fields)

    def emit(self) -> bytes:
        """Returns the UDP payload that encodes the packet."""
        kind = self.kind | (RESULT if self.result else 0)
        version, present = VERSION, b""
        if self.present is not None:
            version = VERSION_WITH_PRESENCE
            present = self.present.to_bytes(PRESENCE_BYTES, "big")
        fields = (version, kind, self.job, self.slot, self.exponent, self.attempt, self.tag)
        header = np.array([fields], HEADER)
        shapes = b"".join(shape.emit() for shape in self.shapes)
        return header.tobytes() + present + shapes + np.array(self.values, ">i4").tobytes()

    def __str__(self) -> str:
        direction = "result" if self.result else "contribution"
        place = f"job {self.job} slot {self.slot} tag {self.tag} exponent {self.exponent}"
        body = " to ".join(map(str, self.shapes)) or f"{len(self.values)} values"
        return f"{direction} {self.kind.name} {place}, {body}"


def _without_presence(datagram: bytes) -> tuple[bytes, int | None]:
    """Returns a packet as one of the version without presence, and the presence that it had, which
    is None if it had none."""
    if datagram[:1] != bytes([VERSION_WITH_PRESENCE]):
        return datagram, None
    end = HEADER_BYTES + PRESENCE_BYTES
    present = int.from_bytes(datagram[HEADER_BYTES:end], "big")
    return bytes([VERSION]) + datagram[1:HEADER_BYTES] + datagram[end:], present
