"""Merges a run's captures into one file in pcapng's format, in the order of time.

The format is that of the Internet draft "PCAP Now Generic (pcapng) Capture File Format". Its blocks
that are written here: Section Header (4.1), Interface Description (4.2) and Enhanced Packet (4.3).
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

NAME = "all.pcapng"
INBOUND, OUTBOUND = 1, 2
"""The direction of a frame at its interface, as in the option epb_flags."""
WAYS = {"in": INBOUND, "out": OUTBOUND}
_PCAP_HEADER, _PCAP_RECORD = struct.Struct("<I20x"), struct.Struct("<IIII")
_UNITS_NS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
"""How many nanoseconds the fraction of a pcap's second counts, by the file's magic number."""
SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET = 0x0A0D0D0A, 1, 6
COMMENT, EPB_FLAGS, IF_NAME, IF_DESCRIPTION, IF_SPEED = 1, 2, 2, 3, 8
_APPLICATION, _IF_TSRESOL = 4, 9
_NANOSECONDS = bytes([9])
_ETHERNET = 1


@dataclass(frozen=True)
class Interface:
    """A port of a switch. neighbour: the node at the other end of its link. rate_bps: the rate of
    the link; None if there is no limit. comments: by direction and number of a frame (from 0), a
    remark on the frame."""

    name: str
    neighbour: str
    rate_bps: int | None
    comments: Mapping[tuple[int, int], str] = field(default_factory=dict)


@dataclass(frozen=True, order=True)
class _Frame:
    time_ns: int
    way: int  # in virtual time, a result leaves at the instant at which the last contribution comes
    interface: int
    number: int
    data: bytes
    length: int


def merge(folder: Path, interfaces: Iterable[Interface]) -> None:
    """Writes `all.pcapng` beside the files `<interface>_in.pcap` and `<interface>_out.pcap` of the
    folder."""
    ports = list(interfaces)
    streams = [
        _frames(folder / f"{port.name}_{name}.pcap", index, way)
        for index, port in enumerate(ports)
        for name, way in WAYS.items()
    ]
    with (folder / NAME).open("wb") as out:
        out.write(_section())
        out.writelines(_interface(port) for port in ports)
        for frame in heapq.merge(*streams):
            out.write(_packet(frame, ports[frame.interface]))


def count_frames(path: Path) -> int:
    """Returns how many whole frames a pcap file holds."""
    return sum(1 for _ in _frames(path, 0, INBOUND))


def _frames(path: Path, interface: int, way: int) -> Iterator[_Frame]:
    """Yields the frames of a pcap file. A last frame that is not whole is left out: a switch that
    was killed may have left one."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        unit_ns = _unit_ns(file)
        number = 0
        while len(header := file.read(_PCAP_RECORD.size)) == _PCAP_RECORD.size:
            seconds, fraction, kept, length = _PCAP_RECORD.unpack(header)
            data = file.read(kept)
            if len(data) < kept:
                return
            time_ns = seconds * 1_000_000_000 + fraction * unit_ns
            yield _Frame(time_ns, way, interface, number, data, length)
            number += 1


def _unit_ns(file: BinaryIO) -> int:
    header = file.read(_PCAP_HEADER.size)
    return _UNITS_NS[_PCAP_HEADER.unpack(header)[0]] if len(header) == _PCAP_HEADER.size else 1


def _block(kind: int, body: bytes) -> bytes:
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


_END_OF_OPTIONS = bytes(4)


def _section() -> bytes:
    fixed = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
    return _block(SECTION_HEADER, fixed + _option(_APPLICATION, b"agglab") + _END_OF_OPTIONS)


def _interface(port: Interface) -> bytes:
    options = [
        _option(IF_NAME, port.name.encode()),
        _option(IF_DESCRIPTION, port.neighbour.encode()),
        _option(_IF_TSRESOL, _NANOSECONDS),
    ]
    if port.rate_bps is not None:
        options.append(_option(IF_SPEED, struct.pack("<Q", port.rate_bps)))
    fixed = struct.pack("<HHI", _ETHERNET, 0, 0)
    return _block(INTERFACE_DESCRIPTION, fixed + b"".join(options) + _END_OF_OPTIONS)


def _packet(frame: _Frame, port: Interface) -> bytes:
    time = (frame.time_ns >> 32, frame.time_ns & 0xFFFFFFFF)
    fixed = struct.pack("<IIIII", frame.interface, *time, len(frame.data), frame.length)
    options = _option(EPB_FLAGS, struct.pack("<I", frame.way))
    if comment := port.comments.get((frame.way, frame.number)):
        options += _option(COMMENT, comment.encode())
    return _block(ENHANCED_PACKET, fixed + _padded(frame.data) + options + _END_OF_OPTIONS)
