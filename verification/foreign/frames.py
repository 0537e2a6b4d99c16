"""The frames that the outsider sends, drawn from a seed. It sends one frame of each kind in
turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from agglab.testbed.systems.frames import ETHERNET, IPV4, IPV4_TYPE, UDP, End, ethernet, ipv4, udp

FRAME_BYTES = 1514
HEADERS_BYTES = ETHERNET.size + IPV4.size + 8
ADDRESSES = slice(ETHERNET.size + 12, ETHERNET.size + 20)
PORTS = slice(HEADERS_BYTES - 8, HEADERS_BYTES - 4)


@dataclass(frozen=True)
class ForeignHost:
    """The outsider, which is not a member of the job, and the material for its frames. own: its
    address. ends: the addresses that occur in the system's frames. others, same: recorded frames of
    other systems, and of another run of this system. attack: the frames of `System.attack`."""

    chance: Random
    own: End
    ends: Sequence[End]
    others: Sequence[bytes]
    same: Sequence[bytes]
    attack: Iterator[tuple[str, bytes]]

    def frames(self) -> Iterator[tuple[str, bytes]]:
        """Yields (kind, frame) without end."""
        while True:
            for kind, make in KINDS.items():
                yield kind, make(self)


def ends_of(frames: Sequence[bytes]) -> list[End]:
    """Returns all UDP addresses from which and to which frames go."""
    found: dict[End, None] = {}
    for frame in frames:
        to, source, kind = ETHERNET.unpack_from(frame)
        if kind != IPV4_TYPE or frame[ETHERNET.size + 9] != UDP or len(frame) < HEADERS_BYTES:
            continue
        ips, ports = frame[ADDRESSES], frame[PORTS]
        found[End(source, ips[:4], int.from_bytes(ports[:2], "big"))] = None
        found[End(to, ips[4:], int.from_bytes(ports[2:], "big"))] = None
    return list(found)


def _noise(who: ForeignHost) -> bytes:
    return who.chance.randbytes(who.chance.randint(0, FRAME_BYTES))


def _random_payload(who: ForeignHost) -> bytes:
    return who.chance.randbytes(who.chance.randint(0, FRAME_BYTES - HEADERS_BYTES))


def _sent(who: ForeignHost, source: End, payload: bytes) -> bytes:
    """Returns a datagram with correct lengths and checksums to one of the system's addresses."""
    to = who.chance.choice(who.ends)
    return ethernet(to.mac, who.own.mac, ipv4(source.ip, to.ip, udp(source, to, payload)))


def _datagram(who: ForeignHost) -> bytes:
    return _sent(who, who.own, _random_payload(who))


def _spoofed(who: ForeignHost) -> bytes:
    return _sent(who, who.chance.choice(who.ends), _random_payload(who))


def _other(who: ForeignHost) -> bytes:
    """Returns a recorded frame of another system, unchanged."""
    return who.chance.choice(who.others)


def _other_payload(who: ForeignHost) -> bytes:
    """Returns another system's payload in a packet whose source address is that of one of this
    system's agents."""
    return _sent(who, who.chance.choice(who.ends), _other(who)[HEADERS_BYTES:])


def _old(who: ForeignHost) -> bytes:
    return who.chance.choice(who.same)


def _own_name(who: ForeignHost) -> bytes:
    """Returns a payload of this system in a packet with the outsider's own source address."""
    return _sent(who, who.own, _old(who)[HEADERS_BYTES:])


def _cut(who: ForeignHost) -> bytes:
    frame = who.chance.choice((_old, _other, _attack))(who)
    return frame[: who.chance.randrange(len(frame))]


def _changed(who: ForeignHost) -> bytes:
    """Returns a recorded or attack frame with up to four of its bytes changed."""
    frame = bytearray(who.chance.choice((_old, _other, _attack))(who))
    for _ in range(who.chance.randint(1, 4)):
        frame[who.chance.randrange(len(frame))] = who.chance.randrange(256)
    return bytes(frame)


def _attack(who: ForeignHost) -> bytes:
    return next(who.attack)[1]


KINDS: Mapping[str, Callable[[ForeignHost], bytes]] = {
    "noise": _noise,
    "datagram": _datagram,
    "spoofed": _spoofed,
    "other": _other,
    "other_payload": _other_payload,
    "old": _old,
    "own_name": _own_name,
    "cut": _cut,
    "changed": _changed,
    "attack": _attack,
}
