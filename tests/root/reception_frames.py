"""Frames to host 10.0.0.1 that its kernel takes, or does not: by name, and at random."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterator

from agglab.testbed.systems.frames import AGGREGATOR, End, ethernet, icmp, ipv4, udp

HOST = End(bytes.fromhex("020000000001"), bytes([10, 0, 0, 1]), 48866)
OTHER = End(bytes.fromhex("020000000003"), bytes([10, 0, 0, 3]), 48866)
PAYLOAD = b"hello...hello...hello..."
DATAGRAM = udp(AGGREGATOR, HOST, PAYLOAD)
PACKET = ipv4(AGGREGATOR.ip, HOST.ip, DATAGRAM)
MORE = 0x2000
VLAN, SERVICE, OLD, OLDER = 0x8100, 0x88A8, 0x9100, 0x9200
MARKER = ethernet(
    HOST.mac, AGGREGATOR.mac, ipv4(AGGREGATOR.ip, HOST.ip, udp(AGGREGATOR, HOST, b"marker"))
)
NUMBERS = 32
"""More than the cases of fragments have."""
Case = list[bytes]


def frame(packet: bytes = PACKET, *tags: tuple[int, int], to: bytes = HOST.mac) -> bytes:
    return ethernet(to, AGGREGATOR.mac, packet, tags)


def options(text: str) -> bytes:
    return frame(ipv4(AGGREGATOR.ip, HOST.ip, DATAGRAM, options=bytes.fromhex(text)))


def header(at: int, new: bytes) -> bytes:
    """With other bytes in the IPv4 header, whose checksum fits."""
    packet = bytearray(PACKET)
    packet[at : at + len(new)] = new
    packet[10:12] = b"\0\0"
    total = sum(struct.unpack("!10H", packet[:20]))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    packet[10:12] = struct.pack("!H", total ^ 0xFFFF)
    return frame(bytes(packet))


def unchecked(size: int) -> bytes:
    """A datagram that says it has `size` bytes, without a checksum."""
    head = struct.pack("!HHHH", AGGREGATOR.port, HOST.port, size, 0)
    return frame(ipv4(AGGREGATOR.ip, HOST.ip, head + PAYLOAD))


def wrong_sum(size: int, port: int = HOST.port) -> bytes:
    """A datagram of `size` bytes with the header whose checksum was right before it was changed."""
    right = udp(AGGREGATOR, End(HOST.mac, HOST.ip, port), b"a" * (size - 8))
    return frame(ipv4(AGGREGATOR.ip, HOST.ip, right[:-1] + b"b"))


def fragments(*cuts: int, number: int = 1, overlap: int = 0, **how: bytes) -> Case:
    ends = [0, *cuts, len(DATAGRAM)]
    parts = []
    for start, end in itertools.pairwise(ends):
        last = end == len(DATAGRAM)
        body = DATAGRAM[start : end + (0 if last else overlap)]
        flags = start // 8 | (0 if last else MORE)
        parts.append(frame(ipv4(AGGREGATOR.ip, HOST.ip, body, flags=flags, number=number, **how)))
    return parts


def message(kind: int, code: int, source: bytes = OTHER.ip, quoted: bytes | None = None) -> bytes:
    rest = b"\x14\0\0\0" if kind == 12 else struct.pack("!HH", 0, 68)
    if quoted is None:
        quoted = ipv4(HOST.ip, AGGREGATOR.ip, udp(HOST, AGGREGATOR, PAYLOAD))
    return frame(ipv4(source, HOST.ip, icmp(kind, code, rest, quoted), 1))


def tags() -> dict[str, Case]:
    zeros = {name: [frame(PACKET, *[(kind, 0)])] for name, kind in TAGS.items()}
    several = {f"{count} tags": [frame(PACKET, *[(VLAN, 0)] * count)] for count in (2, 4, 5, 9)}
    return (
        zeros
        | several
        | {
            "priority": [frame(PACKET, (VLAN, 0xE000))],
            "drop eligible": [frame(PACKET, (VLAN, 0x1000))],
            "VLAN 5": [frame(PACKET, (VLAN, 5))],
            "VLAN 4095": [frame(PACKET, (VLAN, 4095))],
            "service VLAN 5": [frame(PACKET, (SERVICE, 5))],
            "0 in service 0": [frame(PACKET, (SERVICE, 0), (VLAN, 0))],
            "service 0 in 0": [frame(PACKET, (VLAN, 0), (SERVICE, 0))],
            "5 in 0": [frame(PACKET, (VLAN, 0), (VLAN, 5))],
            "0 in 5": [frame(PACKET, (VLAN, 5), (VLAN, 0))],
            "old in 0": [frame(PACKET, (VLAN, 0), (OLD, 0))],
        }
    )


TAGS = {"VLAN": VLAN, "service": SERVICE, "old service": OLD, "older service": OLDER}


def cases() -> dict[str, Case]:
    """Each is sent alone; no two fragments of different cases belong together."""
    return (
        tags()
        | several()
        | {
            "plain": [frame()],
            "NOP": [options("01010100")],
            "record route": [options("0707040000000000")],
            "record route full": [options("0707080000000000")],
            "record route, bad pointer": [options("0707030000000000")],
            "two record routes": [options("07070400000000070704000000000000")],
            "time stamps": [options("440c05000000000000000000")],
            "time stamps too short": [options("44030500")],
            "router alert": [options("94040000")],
            "security": [options("82040000")],
            "security label": [options("86040000")],
            "unknown option": [options("5e040000")],
            "option without length": [options("5e010000")],
            "option too long": [options("07400400")],
            "end of options first": [options("00070703")],
            "loose source route": [options("830704" + HOST.ip.hex() + "00")],
            "loose source route at its end": [options("830708" + HOST.ip.hex() + "00")],
            "strict source route": [options("890704" + HOST.ip.hex() + "00")],
            "broadcast MAC": [frame(to=b"\xff" * 6)],
            "multicast MAC": [frame(to=bytes.fromhex("01005e000001"))],
            "other MAC": [frame(to=OTHER.mac)],
            "group source MAC": [ethernet(HOST.mac, b"\xff" * 6, PACKET)],
            "own source MAC": [ethernet(HOST.mac, HOST.mac, PACKET)],
            "padding": [frame() + b"trailer"],
            "checksum 0": [unchecked(8 + len(PAYLOAD))],
            "datagram shorter": [unchecked(16)],
            "datagram longer": [unchecked(99)],
            "datagram of 0": [unchecked(0)],
            "datagram of 7": [unchecked(7)],
            "wrong UDP checksum": [frame(PACKET[:-1] + b"x")],
            "wrong UDP checksum of 76 bytes": [wrong_sum(76)],
            "wrong UDP checksum of 77 bytes": [wrong_sum(77)],
            "wrong UDP checksum of 1400 bytes": [wrong_sum(1400)],
            "wrong UDP checksum for another port": [wrong_sum(1400, port=1)],
            "wrong IPv4 checksum": [frame(PACKET[:10] + b"ab" + PACKET[12:])],
            "version 5": [header(0, b"\x55")],
            "header of 4 words": [header(0, b"\x44")],
            "length 0": [header(2, b"\0\0")],
            "length 40": [header(2, b"\0\x28")],
            "length beyond the frame": [header(2, b"\0\x70")],
            "TTL 0": [header(8, b"\0")],
            "reserved bit": [header(6, b"\x80")],
            "from another": [frame(ipv4(OTHER.ip, HOST.ip, udp(OTHER, HOST, PAYLOAD)))],
            "from itself": [frame(ipv4(HOST.ip, HOST.ip, udp(HOST, HOST, PAYLOAD)))],
            "to another": [frame(ipv4(AGGREGATOR.ip, OTHER.ip, udp(AGGREGATOR, OTHER, PAYLOAD)))],
            "to broadcast": [frame(ipv4(AGGREGATOR.ip, b"\x0a\0\xff\xff", DATAGRAM))],
            "to everybody": [frame(ipv4(AGGREGATOR.ip, b"\xff" * 4, DATAGRAM), to=b"\xff" * 6)],
            "to multicast": [frame(ipv4(AGGREGATOR.ip, bytes([224, 0, 0, 1]), DATAGRAM))],
            "UDP-Lite": [frame(ipv4(AGGREGATOR.ip, HOST.ip, DATAGRAM, 136))],
            "IP in IP": [frame(ipv4(AGGREGATOR.ip, HOST.ip, PACKET, 4))],
            "SNAP": [HOST.mac + AGGREGATOR.mac + b"\0\x44\xaa\xaa\3\0\0\0\x08\0" + PACKET],
        }
        | messages()
    )


def several(first: int = 0) -> dict[str, Case]:
    """Datagrams in fragments. first: below the numbers they have."""
    one, *others = fragments(8, number=first + 20)
    return {
        "fragments": fragments(8, number=first + 2),
        "three fragments": fragments(8, 16, number=first + 3),
        "fragments backwards": fragments(8, 16, number=first + 4)[::-1],
        "a fragment twice": [part for part in fragments(8, 16, number=first + 5) for _ in range(2)][
            :-1
        ],
        "overlapping fragments": fragments(8, 16, number=first + 6, overlap=8),
        "the last fragment missing": fragments(8, 16, number=first + 7)[:2],
        "the first fragment missing": fragments(8, 16, number=first + 8)[1:],
        "fragments with options": fragments(8, number=first + 9, options=b"\1\1\1\0"),
        "fragments with tags": [frame(p[14:], (VLAN, 0)) for p in fragments(8, number=first + 10)],
        "fragments, broadcast": [
            b"\xff" * 6 + part[6:] for part in fragments(8, number=first + 11)
        ],
        "fragments of two packets": [one, *fragments(8, number=first + 21)[1:]],
        "their others": [*others, fragments(8, number=first + 21)[0]],
        "don't fragment, first only": [
            frame(
                ipv4(AGGREGATOR.ip, HOST.ip, DATAGRAM[:16], flags=MORE | 0x4000, number=first + 22)
            )
        ],
        "beyond 65535": [
            frame(ipv4(AGGREGATOR.ip, HOST.ip, DATAGRAM, flags=0x1FFF, number=first + 23))
        ],
        "an end before the end": [
            *fragments(8, 16, number=first + 24)[2:],
            frame(ipv4(AGGREGATOR.ip, HOST.ip, DATAGRAM[8:16], flags=1, number=first + 24)),
            *fragments(8, 16, number=first + 24)[:2],
        ],
    }


def messages() -> dict[str, Case]:
    codes = {3: 17, 4: 2, 5: 5, 8: 1, 11: 3, 12: 4}
    quoted = ipv4(HOST.ip, AGGREGATOR.ip, udp(HOST, AGGREGATOR, PAYLOAD))
    strange = ipv4(HOST.ip, AGGREGATOR.ip, udp(OTHER, AGGREGATOR, PAYLOAD)[2:], 17)
    return {
        f"ICMP {kind}/{code}": [message(kind, code)]
        for kind, count in codes.items()
        for code in range(count)
    } | {
        "ICMP of the aggregator": [message(3, 3, AGGREGATOR.ip)],
        "ICMP with a tag": [frame(message(3, 3)[14:], (VLAN, 0))],
        "ICMP quoting 28 bytes": [message(3, 3, quoted=quoted[:28])],
        "ICMP quoting 27 bytes": [message(3, 3, quoted=quoted[:27])],
        "ICMP quoting options": [
            message(
                3,
                3,
                quoted=ipv4(HOST.ip, AGGREGATOR.ip, udp(HOST, AGGREGATOR, b""), options=b"\1" * 4),
            )
        ],
        "ICMP about another port": [message(3, 3, quoted=strange)],
        "ICMP about another host": [
            message(3, 3, quoted=ipv4(OTHER.ip, AGGREGATOR.ip, udp(HOST, AGGREGATOR, b"")))
        ],
        "ICMP about another target": [
            message(3, 3, quoted=ipv4(HOST.ip, OTHER.ip, udp(HOST, AGGREGATOR, b"")))
        ],
        "ICMP about TCP": [
            message(3, 3, quoted=ipv4(HOST.ip, AGGREGATOR.ip, udp(HOST, AGGREGATOR, b""), 6))
        ],
        "ICMP, wrong checksum": [message(3, 3)[:-1] + b"x"],
    }


def random_cases(seed: int, count: int) -> Iterator[Case]:
    """Changes of the above: bits, bytes, lengths; fragments at random. Numbers are not used again,
    since how long a kernel waits for fragments depends on what comes meanwhile."""
    chance = random.Random(seed)
    alone = [case for name, case in cases().items() if name not in several()]
    for index in range(count):
        first = NUMBERS * (1 + index)
        draw = chance.random()
        if draw < 0.3:
            yield _random_fragments(chance, first)
        else:
            known = list(several(first).values()) if draw < 0.5 else alone
            yield _changed(chance, chance.choice(known))


def _changed(chance: random.Random, case: Case) -> Case:
    frames = [bytearray(one) for one in case]
    changed = chance.choice(frames)
    for _ in range(chance.choice((1, 1, 2, 3))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    if chance.random() < 0.1:
        del changed[chance.randrange(15, len(changed)) :]
    if chance.random() < 0.6:
        _mend(changed)
    return [bytes(one) for one in frames]


def _random_fragments(chance: random.Random, number: int) -> Case:
    return [_random_fragment(chance, number) for _ in range(chance.randrange(2, 12))]


def _random_fragment(chance: random.Random, number: int) -> bytes:
    start = 8 * chance.randrange(4)
    end = min(len(DATAGRAM), start + chance.choice((7, 8, 8, 12, 16, 16, 24, 32)))
    more = MORE if chance.random() < (0.9 if end < len(DATAGRAM) else 0.1) else 0
    flags = start // 8 | more
    packet = ipv4(AGGREGATOR.ip, HOST.ip, DATAGRAM[start:end], flags=flags, number=number)
    return frame(packet)


def _mend(frame: bytearray) -> None:
    """The IPv4 checksum again, where there is an IPv4 header without tags."""
    size = 4 * (frame[14] & 0x0F) if len(frame) > 14 else 0
    if frame[12:14] != b"\x08\x00" or size < 20 or len(frame) < 14 + size:
        return
    frame[24:26] = b"\0\0"
    total = sum(struct.unpack(f"!{size // 2}H", frame[14 : 14 + size]))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    frame[24:26] = struct.pack("!H", total ^ 0xFFFF)
