"""Converts datagrams to Ethernet frames and back, with headers and checksums, as a host's kernel
does (native/framing.c)."""

from __future__ import annotations

import ctypes
import ipaddress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from agglab.hosts.wire import LOWER_HEADER_BYTES
from agglab.testbed.virtual import native


@dataclass(frozen=True)
class Address:
    """The addresses and the UDP port of one end of an exchange of datagrams."""

    mac: str
    ip: str
    port: int


class _Address(ctypes.Structure):
    """The fields of `struct address` of native/framing.h."""

    _fields_ = [
        ("mac", ctypes.c_uint8 * 6),
        ("ip", ctypes.c_uint8 * 4),
        ("port", ctypes.c_uint16),
    ]


class FramingSettings(ctypes.Structure):
    """The fields of `struct framing`."""

    _fields_ = [("own", _Address), ("other", _Address)]

    @classmethod
    def of(cls, own: Address, other: Address) -> FramingSettings:
        return cls(_settings(own), _settings(other))


@lru_cache(maxsize=4096)
def _settings(address: Address) -> _Address:
    mac = (ctypes.c_uint8 * 6)(*bytes.fromhex(address.mac.replace(":", "")))
    ip = (ctypes.c_uint8 * 4)(*packed(address.ip))
    return _Address(mac, ip, address.port)


@cache
def framings_type(count: int) -> Any:
    """Returns the ctypes type of an array of FramingSettings. Making a type takes far longer than
    making an array."""
    return FramingSettings * count


class Framing:
    """The conversion between datagrams and frames for one host's traffic with one other end, in
    both directions."""

    def __init__(self, own: Address, other: Address) -> None:
        self._settings = FramingSettings.of(own, other)
        self._address = ctypes.addressof(self._settings)
        self._library = native.load()

    def frame(self, payload: bytes) -> bytes:
        """Returns the frame that carries a datagram to the other end."""
        room = ctypes.create_string_buffer(LOWER_HEADER_BYTES + len(payload))
        self._library.framing_frame(self._address, payload, len(payload), room)
        return room.raw

    def payload(self, frame: bytes) -> bytes | None:
        """Returns the datagram in a frame that has the form in which hosts send frames; None for
        all other frames. Other frames may still hold a datagram (reception.py)."""
        size = ctypes.c_uint32()
        found = self._library.framing_payload(self._address, frame, len(frame), ctypes.byref(size))
        return frame[LOWER_HEADER_BYTES : LOWER_HEADER_BYTES + size.value] if found else None


@lru_cache(maxsize=4096)
def packed(ip: str) -> bytes:
    """Returns the bytes of an IPv4 address on the wire."""
    return ipaddress.IPv4Address(ip).packed
