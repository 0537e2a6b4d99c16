"""Reads `all.pcapng` as merged.py writes it. The file may come from an untrusted source."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from agglab.testbed.results.captures.merged import (
    COMMENT,
    ENHANCED_PACKET,
    EPB_FLAGS,
    IF_DESCRIPTION,
    IF_NAME,
    IF_SPEED,
    INBOUND,
    INTERFACE_DESCRIPTION,
    SECTION_HEADER,
)
from agglab.testbed.results.files import NoResults

BLOCK_BYTES_MAX = 1 << 20
_BLOCK, _OPTION = struct.Struct("<II"), struct.Struct("<HH")
_INTERFACE, _PACKET = struct.Struct("<HHI"), struct.Struct("<IIIII")


@dataclass(frozen=True)
class Port:
    """A port of a switch. neighbour: the node at the other end of its link. rate_bps: the rate of
    what the switch sends there; None if there is no limit."""

    name: str
    neighbour: str
    rate_bps: int | None


@dataclass(frozen=True)
class CapturedFrame:
    """A frame at a port. is_inbound: whether the switch received it. comment: what is known of
    losses."""

    time_ns: int
    port: Port
    is_inbound: bool
    data: bytes
    comment: str


def captured_ports(path: Path) -> list[Port]:
    """Returns the ports whose frames a file holds. Raises NoResults for a file that Agglab did not
    write."""
    with path.open("rb") as file, _refused(path):
        # All interfaces come before the first packet.
        begin = takewhile(lambda block: block[0] != ENHANCED_PACKET, _blocks(file))
        return [_port(body) for kind, body in begin if kind == INTERFACE_DESCRIPTION]


def captured_frames(path: Path) -> Iterator[CapturedFrame]:
    """Yields the frames of a file in their order. A last block that is not whole is left out.
    Raises NoResults for a file that Agglab did not write."""
    ports = captured_ports(path)
    with path.open("rb") as file, _refused(path):
        for kind, body in _blocks(file):
            if kind == ENHANCED_PACKET:
                yield _frame(body, ports)


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise NoResults(f"{path}: is not a capture that Agglab wrote ({error})") from None


def _blocks(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    first = True
    while len(head := file.read(_BLOCK.size)) == _BLOCK.size:
        kind, length = _BLOCK.unpack(head)
        if first and kind != SECTION_HEADER:
            raise struct.error("it does not begin as pcapng does")
        if not 12 <= length <= BLOCK_BYTES_MAX:
            raise struct.error(f"a block of {length} bytes")
        first = False
        rest = file.read(length - _BLOCK.size)
        if len(rest) < length - _BLOCK.size:
            return
        yield kind, rest[:-4]


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _OPTION.size <= len(data):
        code, length = _OPTION.unpack_from(data, at)
        if code == 0:
            return
        at += _OPTION.size
        yield code, data[at : at + length]
        at += length + -length % 4


def _port(body: bytes) -> Port:
    options = dict(_options(body[_INTERFACE.size :]))
    speed = options.get(IF_SPEED)
    return Port(
        options[IF_NAME].decode() if IF_NAME in options else "port",
        options.get(IF_DESCRIPTION, b"").decode(),
        struct.unpack("<Q", speed)[0] or None if speed else None,
    )


def _frame(body: bytes, ports: list[Port]) -> CapturedFrame:
    interface, high, low, kept, _ = _PACKET.unpack_from(body)
    begin = _PACKET.size
    options = dict(_options(body[begin + kept + -kept % 4 :]))
    flags = struct.unpack("<I", options[EPB_FLAGS])[0] if EPB_FLAGS in options else 0
    return CapturedFrame(
        high << 32 | low,
        ports[interface],
        flags & 3 == INBOUND,
        body[begin : begin + kept],
        options.get(COMMENT, b"").decode(),
    )
