"""Describes packets in words: headers with their fields, as the program's parser reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from p4native.stf.frames import Expect
from p4native.stf.names import Binder
from p4native.stf.show import bits_of, dissect, spaced

LOWER = re.compile(r"(eth|ethernet|ip|ipv4|udp)(_h|_t|_header)?", re.IGNORECASE)
"""The names of headers that every packet of a protocol has alike."""
BYTES_SHOWN = 16


def described(binder: Binder, frame: bytes) -> str:
    """Returns a packet in words: its headers with their fields, without those below the protocol's
    own. What the parser does not read, or cannot be followed, is shown as bytes."""
    return described_nibbles(binder, frame.hex(), frame)


def by_program(program: Path, frame: bytes) -> str:
    """Returns a packet in words, as the parser of a program (its BMv2 JSON) reads it. A result that
    a switch sends has the format of a contribution, but the parser knows only the packets that come
    to the switch: a result is read as if it went the other way."""
    binder = _binder(program)
    ways = (frame, _turned(frame))
    return described(
        binder, max(ways, key=lambda way: sum(bits for _, bits in dissect(binder, way)))
    )


def _turned(frame: bytes) -> bytes:
    """Returns an IPv4 packet with UDP or TCP in which sender and receiver have changed places."""
    if frame[12:15] != b"\x08\x00\x45" or len(frame) < 38:
        return frame
    addresses, ports = frame[30:34] + frame[26:30], frame[36:38] + frame[34:36]
    return frame[6:12] + frame[:6] + frame[12:26] + addresses + ports + frame[38:]


@lru_cache(maxsize=16)
def _binder(program: Path) -> Binder:
    return Binder(json.loads(program.read_text()))


def described_nibbles(binder: Binder, nibbles: str, alike: bytes) -> str:
    """Returns the same for a packet in hexadecimal digits, with `*` for any digit. alike: a packet
    whose bytes stand for these, so that the parser can be followed."""
    headers: dict[str, list[str]] = {}
    end = 0
    for name, at, width in _fields(binder, nibbles, alike):
        header, _, item = name.rpartition(".")
        headers.setdefault(header, []).append(f"{item} {_value(bits_of(nibbles, at, width))}")
        end = at + width
    upper = {header: items for header, items in headers.items() if not LOWER.fullmatch(header)}
    texts = [f"{header}({', '.join(items)})" for header, items in (upper or headers).items()]
    return " ".join([*texts, _rest(nibbles[(end + 3) // 4 :])]).strip() or "an empty packet"


def differing(binder: Binder, expect: Expect, frame: bytes) -> Iterator[str]:
    """Yields a text for each field in which a packet differs from the expected one."""
    nibbles = expect.nibbles or ""
    for name, at, width in _fields(binder, nibbles, frame):
        wanted, came = bits_of(nibbles, at, width), bits_of(frame.hex(), at, width)
        if any(want not in ("*", bit) for want, bit in zip(wanted, came, strict=False)):
            yield f"{name}: expected {_value(wanted)}, came {_value(came)}"
    if len(frame) * 2 < len(nibbles) or (expect.exact and len(frame) * 2 != len(nibbles)):
        yield f"its length: expected {len(nibbles) // 2} bytes, came {len(frame)}"


def _fields(binder: Binder, nibbles: str, alike: bytes) -> Iterator[tuple[str, int, int]]:
    """Yields each field that the parser reads, as (name, first bit, width). Digits that may be any
    are those of `alike`."""
    others = alike.hex().ljust(len(nibbles), "0")
    digits = (other if n == "*" else n for n, other in zip(nibbles, others, strict=False))
    text = "".join(digits)
    at = 0
    for name, width in dissect(binder, bytes.fromhex(text[: len(text) // 2 * 2])):
        yield name, at, width
        at += width


def _rest(nibbles: str) -> str:
    """Returns the first bytes of what the parser does not read, and how many there are."""
    size = len(nibbles) // 2
    more = f" ... ({size} bytes)" if size > BYTES_SHOWN else ""
    return spaced(nibbles[: 2 * BYTES_SHOWN]) + more


def _value(bits: str) -> str:
    if "*" in bits:
        return "any" if set(bits) == {"*"} else f"0b{bits}"
    number = int(bits, 2)
    return str(number) if len(bits) <= 32 else f"{number:#0{len(bits) // 4 + 2}x}"
