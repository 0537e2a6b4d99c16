"""Datagrams to Ethernet frames and back, as a host's kernel does it: headers and checksums."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from functools import lru_cache

from agglab.hosts.wire import LOWER_HEADER_BYTES
from agglab.testbed.checksum import ONES, word_sum

ETHERTYPE_IPV4 = 0x0800
VERSION_IHL = 0x45
DONT_FRAGMENT = 0x4000
DONT_FRAGMENT_BYTE = DONT_FRAGMENT >> 8
TTL = 64
UDP = 17

ETHERNET = struct.Struct("!6s6sH")
IPV4 = struct.Struct("!BBHHHBBH4s4s")
UDP_HEADER = struct.Struct("!HHHH")
IP_START, UDP_START = 14, 34


@dataclass(frozen=True)
class Address:
    """One end of UDP."""

    mac: str
    ip: str
    port: int


class Framing:
    """One host's traffic with one other end, both ways."""

    def __init__(self, own: Address, other: Address) -> None:
        self._own, self._other = own, other
        self._source, self._target = packed(own.ip), packed(other.ip)
        self._headers: dict[int, tuple[bytes, int]] = {}
        # Of a frame that comes: addresses of Ethernet and its type; of IP; of UDP.
        self._ethernet = ETHERNET.pack(_mac(own.mac), _mac(other.mac), ETHERTYPE_IPV4)
        self._addresses = self._target + self._source + struct.pack("!HH", other.port, own.port)
        self._pseudo = word_sum(self._source + self._target + bytes([0, UDP]))

    def frame(self, payload: bytes) -> bytes:
        """The frame that carries a datagram to the other end."""
        size = len(payload)
        known = self._headers.get(size)
        if known is None:
            known = self._headers[size] = self._header(size)
        head, partial = known
        checksum = ONES - (partial + word_sum(payload)) % ONES
        return b"%b%b%b" % (head, checksum.to_bytes(2, "big"), payload)

    def payload(self, frame: bytes) -> bytes | None:
        """The datagram in a frame as hosts send them; None for all others, which may yet hold one
        (reception.py)."""
        size = len(frame)
        if size < LOWER_HEADER_BYTES or frame[:6] != self._ethernet[:6] or frame[12] != 8:
            return None
        if frame[26:38] != self._addresses or frame[23] != UDP or frame[13]:
            return None
        udp_size = int.from_bytes(frame[38:40], "big")
        if frame[20] & ~DONT_FRAGMENT_BYTE or frame[21]:
            return None
        if frame[14] != VERSION_IHL or not 8 <= udp_size <= size - UDP_START:
            return None
        if int.from_bytes(frame[16:18], "big") != udp_size + 20 or word_sum(
            frame[IP_START:UDP_START]
        ):
            return None
        end = UDP_START + udp_size
        checked = frame[40:42] != b"\0\0"  # RFC 768: otherwise the sender computed none
        if checked and (self._pseudo + udp_size + word_sum(frame[UDP_START:end])) % ONES:
            return None
        return frame[LOWER_HEADER_BYTES:end]

    def _header(self, size: int) -> tuple[bytes, int]:
        """Everything before the UDP checksum, and what it adds to that."""
        total = IPV4.size + UDP_HEADER.size + size
        fields = (VERSION_IHL, 0, total, 0, DONT_FRAGMENT, TTL, UDP)
        blank = IPV4.pack(*fields, 0, self._source, self._target)
        ip = IPV4.pack(*fields, ONES - word_sum(blank), self._source, self._target)
        udp = UDP_HEADER.pack(self._own.port, self._other.port, UDP_HEADER.size + size, 0)
        macs = ETHERNET.pack(_mac(self._other.mac), _mac(self._own.mac), ETHERTYPE_IPV4)
        return macs + ip + udp[:6], self._pseudo + UDP_HEADER.size + size + word_sum(udp)


@lru_cache(maxsize=4096)
def packed(ip: str) -> bytes:
    """As on the wire."""
    return ipaddress.IPv4Address(ip).packed


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def destination_port(frame: bytes) -> int:
    """The UDP port a frame is for, whatever else is in it."""
    return int.from_bytes(frame[36:38], "big")
