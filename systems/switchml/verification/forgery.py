"""Random frames: contributions and results that a switch's members could send, and changed frames
that no honest member sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from agglab.systems.switchml.verification import packets
from agglab.systems.switchml.verification.packets import (
    AGGREGATOR,
    BODY_AT,
    HEADER_AT,
    INT32,
    OPENING,
    RESULT,
    SCALED,
    UDP_AT,
    VERSION,
    End,
    Message,
)
from agglab.systems.switchml.verification.switch_model import JobRole, SwitchModel

UNKNOWN = OPENING + 1
PORTS_MAX = 6
TAG_STEPS = (0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, -2, 4, 2**31 - 2, -(2**31), -4, 2**31 - 4, 1, -1)
WORDS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
EXPONENT_CHOICES = (0, 1, 2, 127, 254, 255)
ATTEMPTS = (0, 0, 1, 2, 254, 255)


def contribution(
    chance: Random, model: SwitchModel, roles: Sequence[JobRole], lanes: int
) -> tuple[int, bytes]:
    """Returns a port and a frame. The frame's fields are close to what the switch's cells hold, so
    that many frames are accepted."""
    role = chance.choice(roles)
    ports = list(role.members)
    port = chance.choice(ports) if chance.random() < 0.95 else chance.randrange(PORTS_MAX)
    slot = (
        chance.randrange(min(2, role.slots))
        if chance.random() < 0.9
        else chance.randrange(role.slots)
    )
    cell = model.cell(role, slot, chance.randrange(2))
    own = role.members.get(port)
    result = RESULT if own is not None and own.bit == 0 else 0
    kind = cell.kind if chance.random() < 0.85 else chance.choice((INT32, SCALED, OPENING, UNKNOWN))
    message = Message(
        VERSION,
        kind | result,
        role.number,
        slot,
        chance.choice(EXPONENT_CHOICES),
        chance.choice(ATTEMPTS),
        (cell.tag + chance.choice(TAG_STEPS)) % 2**32,
        body(chance, kind, lanes),
    )
    sender = own.receiver if own is not None else AGGREGATOR
    frame = packets.make(sender, AGGREGATOR, message.datagram())
    if chance.random() < 0.3:
        frame = corrupted(chance, frame, lanes)
    return port, frame


def body(chance: Random, kind: int, lanes: int) -> bytes:
    """Returns a random body. Values are either words that carry when they are summed, or any bytes.
    The two shapes of an OPENING are mostly equal, with one byte that is not 0."""
    size = packets.body_bytes(kind, lanes)
    if kind == OPENING and chance.random() < 0.7:
        shape = bytearray(size // 2)
        shape[chance.randrange(len(shape))] = chance.choice((1, 127, 128, 255))
        return bytes(shape) * 2
    if chance.random() < 0.3:
        return b"".join(chance.choice(WORDS).to_bytes(4, "big") for _ in range(size // 4))
    return chance.randbytes(size)


def corrupted(chance: Random, frame: bytes, lanes: int) -> bytes:
    """Returns the frame with one or two fields changed. Checksums are mostly corrected, as an
    attacker would do."""
    changed = bytearray(frame)
    for _ in range(chance.choice((1, 1, 2))):
        change = chance.choice(CHANGES)
        if len(changed) >= BODY_AT:
            change(chance, changed)
    if chance.random() < 0.85 and changed[12:14] == b"\x08\0":
        packets.mend(changed, _checked_end(chance, changed, lanes))
    if chance.random() < 0.15:
        changed[40:42] = chance.choice((b"\0\0", b"\0\0", b"\xff\xff", chance.randbytes(2)))
    if chance.random() < 0.1:
        changed[24:26] = chance.choice((b"\0\0", b"\xff\xff", chance.randbytes(2)))
    if chance.random() < 0.1:
        del changed[chance.randrange(len(changed)) :]
    return bytes(changed)


def _checked_end(chance: Random, frame: bytearray, lanes: int) -> int:
    """Returns where the data that a UDP checksum covers is taken to end: according to the packet's
    length, according to its kind, or before the body."""
    if len(frame) > BODY_AT and chance.random() < 0.5:
        if chance.random() < 0.3:
            return BODY_AT
        return min(len(frame), BODY_AT + packets.body_bytes(frame[HEADER_AT + 1], lanes))
    total = int.from_bytes(frame[16:18], "big")
    return min(len(frame), 14 + total) if total > 28 else len(frame)


def _put(at: int, size: int, *values: int) -> Callable[[Random, bytearray], None]:
    def change(chance: Random, frame: bytearray) -> None:
        value = chance.choice(values) if values else chance.randrange(1 << 8 * size)
        frame[at : at + size] = value.to_bytes(size, "big")

    return change


def _more(at: int) -> Callable[[Random, bytearray], None]:
    """Returns a function that makes the length field at this position slightly wrong."""

    def change(chance: Random, frame: bytearray) -> None:
        old = int.from_bytes(frame[at : at + 2], "big")
        new = (old + chance.choice((-16, -4, -1, 1, 2, 4, 8, 16, 256))) % 2**16
        frame[at : at + 2] = new.to_bytes(2, "big")

    return change


def _longer(chance: Random, frame: bytearray) -> None:
    """Adds bytes at the end of the frame, with or without changing the lengths so that they cover
    these bytes."""
    count = chance.choice((1, 2, 4, 6, 16))
    frame += chance.randbytes(count)
    covered = chance.randrange(3)
    for at, chosen in ((16, covered >= 1), (38, covered == 2)):
        if chosen:
            new = (int.from_bytes(frame[at : at + 2], "big") + count) % 2**16
            frame[at : at + 2] = new.to_bytes(2, "big")


def _cut(chance: Random, frame: bytearray) -> None:
    """Removes a part of the body, whatever the lengths say."""
    if len(frame) > BODY_AT:
        del frame[chance.randrange(BODY_AT, len(frame)) :]


def _flipped(chance: Random, frame: bytearray) -> None:
    frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)


def _pretended(chance: Random, frame: bytearray) -> None:
    """Changes the frame so that it pretends to be a result that the aggregator sends to a
    worker."""
    frame[26:30] = packets.AGGREGATOR_IP
    frame[30:34] = bytes([10, 0, chance.randrange(3), chance.randrange(1, 4)])
    frame[:6] = bytes([2, 0, 0, 0, *frame[32:34]])
    frame[34:36] = packets.AGGREGATOR_PORT.to_bytes(2, "big")
    frame[HEADER_AT + 1] |= RESULT


def _wrapped(chance: Random, frame: bytearray) -> None:
    """Inserts VLAN tags, which a receiver removes."""
    for _ in range(chance.choice((1, 1, 2, 4, 5))):
        frame[12:12] = chance.choice(packets.TAGS) + bytes([0, chance.choice((0, 0, 1))])


def _in_ipv6(chance: Random, frame: bytearray) -> None:
    """Changes the frame to IPv6, with addresses that contain the IPv4 addresses. Sometimes one bit
    of an address is wrong."""
    source, target = frame[26:30], frame[30:34]
    head = bytearray(b"\x60\0\0\0" + (len(frame) - 34).to_bytes(2, "big") + bytes([17, 64]))
    head += packets.MAPPED + source + packets.MAPPED + target
    if chance.random() < 0.2:
        head[chance.randrange(8, 40)] ^= 1 << chance.randrange(8)
    frame[12:34] = b"\x86\xdd" + head


def _plain(chance: Random, frame: bytearray) -> None:
    """Changes the frame to a packet between two hosts that has nothing to do with aggregation. Its
    MAC address is that of the receiving host, or of the switch, which then routes it."""
    frame[30:34] = bytes([10, 0, chance.randrange(3), chance.randrange(1, 4)])
    frame[:6] = chance.choice((bytes([2, 0, 0, 0, *frame[32:34]]), packets.AGGREGATOR_MAC))
    if frame[26:30] == packets.AGGREGATOR_IP:
        frame[26:30] = bytes([10, 0, 0, 1])


CHANGES: tuple[Callable[[Random, bytearray], None], ...] = (
    _put(HEADER_AT, 1, 0, 2, 129),
    _put(HEADER_AT + 1, 1, 0, 1, 2, 3, 4, 127, 128, 129, 130, 131, 255),
    _put(HEADER_AT + 1, 1),
    _put(HEADER_AT + 2, 2, 0, 1, 2, 3, 256, 257, 0xFFFF),
    _put(HEADER_AT + 4, 2, *range(10), 0x7FFF, 0x8000, 0xFFFF),
    _put(HEADER_AT + 4, 2, *range(10)),
    _more(16),
    _more(38),
    _more(16),
    _more(38),
    _longer,
    _longer,
    _cut,
    _cut,
    _flipped,
    _flipped,
    _pretended,
    _pretended,
    _plain,
    _plain,
    _wrapped,
    _wrapped,
    _in_ipv6,
    _put(12, 2, 0x0806, 0x8100, 0x86DD),
    _put(14, 1, 0x44, 0x46, 0x4F, 0x55, 0x65),
    _put(15, 1),
    _put(18, 2),
    _put(20, 2, 0, 0x2000, 0x4000, 0x8000, 1, 0x1FFF),
    _put(22, 1, 0, 1, 2, 255),
    _put(23, 1, 1, 6, 17),
    _put(30, 4, 0x0A00FFFF, 0x0A000001, 0x0AFFFFFE),
    _put(UDP_AT, 2),
    _put(UDP_AT + 2, 2, 48863, 48865, 48866, 0),
    _put(0, 6),
    _put(6, 6),
    _put(BODY_AT - 4, 4),
)


def end_of(mac: str, ip: str, port: int) -> End:
    """Returns the End with these addresses, which are given in the notation of topologies."""
    return End(bytes.fromhex(mac.replace(":", "")), bytes(map(int, ip.split("."))), port)
