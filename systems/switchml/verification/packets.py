"""The frames of docs/protocol.md as bytes: how a switch reads them, how a host takes them, and how
they are made."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, replace

AGGREGATOR_MAC = bytes.fromhex("02000000fffe")
AGGREGATOR_IP = bytes([10, 0, 255, 254])
AGGREGATOR_PORT = 48864
WORKER_PORT_BASE = 48865
ICMP, UDP = 1, 17
TAGS = (b"\x81\0", b"\x88\xa8", b"\x91\0")
TAGS_MAX = 4
MAPPED = bytes(10) + b"\xff\xff"
"""The prefix of IPv6 addresses that hold an IPv4 address (RFC 4291)."""
VERSION, RESULT = 1, 0x80
INT32, SCALED, OPENING, HALF, BFLOAT = 0, 1, 2, 3, 7
SHAPE = struct.Struct("!QIHHBB")
"""Elements, workers, lanes, window, dtype and round, which are compared as one number."""

IP_AT, UDP_AT, HEADER_AT, BODY_AT = 14, 34, 42, 54
HEADER = struct.Struct("!BBHHBBI")
ONES = 0xFFFF


@dataclass(frozen=True)
class End:
    """An address of UDP: that of a worker or of the aggregator."""

    mac: bytes
    ip: bytes
    port: int


AGGREGATOR = End(AGGREGATOR_MAC, AGGREGATOR_IP, AGGREGATOR_PORT)


@dataclass(frozen=True)
class Message:
    """The aggregation header, and the body that follows it on the wire."""

    version: int
    kind: int
    job: int
    slot: int
    exponent: int
    attempt: int
    tag: int
    body: bytes = b""

    def datagram(self) -> bytes:
        """Returns the UDP payload."""
        fields = (self.version, self.kind, self.job, self.slot)
        return HEADER.pack(*fields, self.exponent, self.attempt, self.tag) + self.body


class FrameClass(enum.Enum):
    """The classes of frames that a switch distinguishes."""

    AGGREGATION = enum.auto()
    FORGED = enum.auto()
    HOST_ERROR = enum.auto()
    MALFORMED = enum.auto()
    PLAIN = enum.auto()


@dataclass(frozen=True)
class ParsedFrame:
    """A frame as a switch reads it. sound: whether it is complete, with correct checksums and
    lengths. rest: the bytes after the packet's end."""

    frame_class: FrameClass
    message: Message | None = None
    sound: bool = False
    rest: bytes = b""


def read(frame: bytes, lanes: int) -> ParsedFrame:
    """Returns what a switch's parser and checksums find in a frame."""
    source, target, protocol = addresses(frame)
    if frame[12:14] == b"\x08\0" and target == AGGREGATOR_IP and _is_message(frame):
        return _read_message(frame, lanes)
    if source == AGGREGATOR_IP:
        return ParsedFrame(FrameClass.FORGED)
    if target == AGGREGATOR_IP and protocol == ICMP:
        return ParsedFrame(FrameClass.HOST_ERROR)
    if source is None or target == AGGREGATOR_IP:
        return ParsedFrame(FrameClass.MALFORMED)
    return ParsedFrame(FrameClass.PLAIN)


Addresses = tuple[bytes | None, bytes | None, int | None]
UNREAD: Addresses = (None, None, None)


def addresses(frame: bytes) -> Addresses:
    """Returns source, target and protocol of the innermost IPv4 header. For an IPv6 header whose
    addresses hold IPv4 ones, returns these as source and target. They are empty if there are none,
    and None if the frame ends too soon or has too many tags."""
    at, tags = 12, 0
    while frame[at : at + 2] in TAGS and len(frame) >= at + 2:
        at, tags = at + 4, tags + 1
        if tags > TAGS_MAX:
            return UNREAD
    if len(frame) < at + 2:
        return UNREAD
    kind, packet = frame[at : at + 2], frame[at + 2 :]
    if kind == b"\x08\0":
        return (packet[12:16], packet[16:20], packet[9]) if len(packet) >= 20 else UNREAD
    if kind == b"\x86\xdd":
        if len(packet) < 40:
            return UNREAD
        return _mapped(packet[8:24]), _mapped(packet[24:40]), None
    return b"", b"", None


def _mapped(address: bytes) -> bytes:
    return address[12:] if address[:12] == MAPPED else b""


def _is_message(frame: bytes) -> bool:
    """Returns whether an IPv4 frame is long enough and goes to the aggregator's UDP port, without
    options or fragments."""
    whole = frame[14] == 0x45 and frame[23] == UDP and not (frame[20] & 0x3F or frame[21])
    return whole and len(frame) >= BODY_AT and frame[36:38] == AGGREGATOR_PORT.to_bytes(2, "big")


def _read_message(frame: bytes, lanes: int) -> ParsedFrame:
    fields = HEADER.unpack_from(frame, HEADER_AT)
    header = Message(*fields)
    end = BODY_AT + body_bytes(header.kind, lanes)
    if len(frame) < end:
        return ParsedFrame(FrameClass.AGGREGATION, header)
    message = replace(header, body=frame[BODY_AT:end])
    total, udp_size = int.from_bytes(frame[16:18], "big"), int.from_bytes(frame[38:40], "big")
    sound = total == end - IP_AT and udp_size == end - UDP_AT and checksums_hold(frame, end)
    return ParsedFrame(FrameClass.AGGREGATION, message, sound, frame[end:])


def checksums_hold(frame: bytes, end: int) -> bool:
    """Returns whether the checksums of IPv4 (without options) and of UDP up to `end` are correct. A
    UDP checksum may be absent."""
    if ones_sum(frame[IP_AT:UDP_AT]):
        return False
    pseudo = frame[26:34] + bytes([0, frame[23]]) + frame[38:40]
    return frame[40:42] == b"\0\0" or not ones_sum(pseudo + frame[UDP_AT:end])


def taken(frame: bytes, own: End) -> bytes | None:
    """Returns the datagram that a host's kernel gives to a worker's socket, which receives only
    from the aggregator; None if it gives none."""
    if len(frame) < HEADER_AT or frame[:6] != own.mac or frame[12:14] != b"\x08\0":
        return None
    ports = struct.pack("!HH", AGGREGATOR_PORT, own.port)
    if frame[26:38] != AGGREGATOR_IP + own.ip + ports or frame[14] != 0x45 or frame[23] != UDP:
        return None
    total, udp_size = int.from_bytes(frame[16:18], "big"), int.from_bytes(frame[38:40], "big")
    end = UDP_AT + udp_size
    if frame[20] & 0x3F or frame[21] or udp_size < 8 or total != udp_size + 20 or end > len(frame):
        return None
    return frame[HEADER_AT:end] if checksums_hold(frame, end) else None


def make(sender: End, receiver: End, datagram: bytes, like: bytes = b"") -> bytes:
    """Returns a frame. like: a frame from which the type of service, identification and fragment
    bits are copied."""
    udp_size = 8 + len(datagram)
    tos, number, fragment = like[15:16] or b"\0", like[18:20] or b"\0\0", like[20:22] or b"\x40\0"
    addresses = sender.ip + receiver.ip
    ip = b"\x45%b%b%b%b\x40\x11" % (tos, (udp_size + 20).to_bytes(2, "big"), number, fragment)
    udp = struct.pack("!HHH", sender.port, receiver.port, udp_size)
    ip_sum = ONES - ones_sum(ip + addresses)
    pseudo = b"%b\0\x11%b" % (addresses, udp[4:])
    udp_sum = ONES - ones_sum(pseudo + udp + datagram)
    parts = (receiver.mac, sender.mac, b"\x08\0", ip, ip_sum.to_bytes(2, "big"), addresses)
    return b"".join((*parts, udp, udp_sum.to_bytes(2, "big"), datagram))


def mend(frame: bytearray, end: int) -> None:
    """Corrects the checksums of a frame, even if other fields are wrong. A computed checksum of 0
    is written as 0xffff."""
    frame[24:26] = b"\0\0"
    frame[24:26] = (ONES - ones_sum(frame[IP_AT:UDP_AT])).to_bytes(2, "big")
    frame[40:42] = b"\0\0"
    pseudo = bytes(frame[26:34]) + bytes([0, frame[23]]) + bytes(frame[38:40])
    total = (ones_sum(pseudo) + ones_sum(frame[UDP_AT:end])) % ONES
    frame[40:42] = (ONES - total).to_bytes(2, "big")


def ones_sum(data: bytes | bytearray) -> int:
    """Returns the ones' complement sum of big-endian words, modulo 0xffff. A last odd byte is the
    upper half of a word."""
    value = int.from_bytes(data, "big")
    return (value << 8 if len(data) & 1 else value) % ONES


def body_bytes(kind: int, lanes: int) -> int:
    """Returns the number of bytes after the header."""
    if kind & ~RESULT == OPENING:
        return 2 * SHAPE.size
    return 4 * lanes if kind & ~RESULT in (INT32, SCALED) else 0


def merged(kind: int, a: bytes, b: bytes) -> bytes:
    """Returns the aggregate of the bodies of two contributions. For shapes, it has the smallest and
    the largest. For values, each 32-bit value is summed modulo 2^32."""
    if kind == OPENING:
        size = SHAPE.size
        return min(a[:size], b[:size]) + max(a[size:], b[size:])
    lanes = len(a) // 4
    pairs = zip(struct.unpack(f"!{lanes}I", a), struct.unpack(f"!{lanes}I", b), strict=True)
    return struct.pack(f"!{lanes}I", *((x + y) & 0xFFFFFFFF for x, y in pairs))


def described(frame: bytes) -> str:
    """Returns a short description of a frame."""
    if len(frame) < BODY_AT or frame[12:14] != b"\x08\0":
        return f"{len(frame)} bytes"
    version, kind, job, slot, exponent, attempt, tag = HEADER.unpack_from(frame, HEADER_AT)
    names = {INT32: "int32", SCALED: "scaled", OPENING: "opening"}
    name = names.get(kind & ~RESULT, f"kind {kind & ~RESULT}")
    what = f"{'result' if kind & RESULT else 'contribution'} {name}"
    other = "" if version == VERSION else f" version {version}"
    return f"{what}{other} job {job} slot {slot} tag {tag} exponent {exponent} attempt {attempt}"
