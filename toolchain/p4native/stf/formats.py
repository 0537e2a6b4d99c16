"""Packets by the names of their fields: a format says how the fields of a packet become bytes.

A format is written as a list of parts: hexadecimal digits, fields `{slot:16}`, lists of numbers
`{values:32...}`, and `ipv4(...)` and `udp(...)` for headers whose lengths and checksums follow from
what comes behind them. Bits are kept as text, in which `*` stands for any bit, and OPEN at the end
for any number of bits.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Fields = Mapping[str, str]
"""The values of fields as a script has them: numbers, lists `1,2,3`, or `*` for any."""

MAX_BYTES = 1 << 16
OPEN = "~"
_NAME = re.compile(r"[A-Za-z_]\w*")
_PART = re.compile(
    r"""\s*(?:
    (?P<digits>[0-9a-fA-F*]+)(?![\w(])
  | \{(?P<field>[A-Za-z_]\w*):(?P<bits>\d+)(?P<list>\.\.\.)?\}
  | (?P<header>ipv4|udp)\((?P<arguments>[^()]*)\)
)""",
    re.VERBOSE,
)
_IN_TEXT = re.compile(r"\{([A-Za-z_]\w*)\}")
_IPV4_BYTES, _UDP_BYTES, _TTL = 20, 8, 64


class FormatError(ValueError):
    """A format, or a packet of a format, that is wrong."""


@dataclass(frozen=True)
class Format:
    """How the packets of one name become bytes. parts: in the order of the packet."""

    name: str
    parts: tuple[Part, ...]

    def nibbles(self, fields: Fields, open_fields: bool = False) -> str:
        """Returns the hexadecimal digits of a packet, with `*` for any digit.

        open_fields: whether fields that are missing, and what depends on them, may be anything.
        Raises FormatError for fields that are missing, unknown or too large.
        """
        known = {name for part in self.parts for name in part.names()}
        unknown = [name for name in fields if name not in known]
        if unknown:
            there = ", ".join(sorted(known)) or "none"
            raise FormatError(f"`{self.name}` has no field `{unknown[0]}`; it has {there}")
        if not open_fields and (missing := [name for name in sorted(known) if name not in fields]):
            raise FormatError(f"`{self.name}` needs a value for `{missing[0]}`")
        bits = ""
        for index in reversed(range(len(self.parts))):
            bits = self.parts[index].bits(fields, bits, self.parts[:index]) + bits
        bits = bits.removesuffix(OPEN)
        if OPEN in bits:
            raise FormatError(f"`{self.name}` needs values for a list that does not end it")
        if len(bits) % 8 or len(bits) > 8 * MAX_BYTES:
            raise FormatError(f"`{self.name}` has {len(bits)} bits: not whole bytes, or too many")
        return "".join(_nibble(bits[at : at + 4]) for at in range(0, len(bits), 4))

    def missing_list(self, fields: Fields) -> str:
        """Returns a list without values, whose length may therefore be any, or an empty string."""
        lists = [part.name for part in self.parts if isinstance(part, Field) and part.is_list]
        return next((name for name in lists if name not in fields), "")


@dataclass(frozen=True)
class Part(ABC):
    """One part of a format."""

    def names(self) -> Iterator[str]:
        """Yields the fields that the part depends on."""
        yield from ()

    @abstractmethod
    def bits(self, fields: Fields, behind: str, before: tuple[Part, ...]) -> str:
        """Returns the part's bits. behind: the bits of all parts behind it. before: the parts in
        front of it."""


@dataclass(frozen=True)
class Digits(Part):
    digits: str

    def bits(self, fields: Fields, behind: str, before: tuple[Part, ...]) -> str:
        return "".join("****" if d == "*" else _bits(int(d, 16), 4) for d in self.digits)


@dataclass(frozen=True)
class Field(Part):
    """A number of `width` bits, or several of them."""

    name: str
    width: int
    is_list: bool

    def names(self) -> Iterator[str]:
        yield self.name

    def bits(self, fields: Fields, behind: str, before: tuple[Part, ...]) -> str:
        text = fields.get(self.name, "*")
        if self.is_list and text == "*" and self.name not in fields:
            return OPEN
        values = text.split(",") if self.is_list else [text]
        return "".join(self._number(value) for value in values)

    def _number(self, text: str) -> str:
        if text == "*":
            return "*" * self.width
        number = _number(text, self.name)
        if not -(1 << self.width - 1) <= number < 1 << self.width:
            raise FormatError(f"{text} does not fit the {self.width} bits of `{self.name}`")
        return _bits(number % (1 << self.width), self.width)


@dataclass(frozen=True)
class Ipv4(Part):
    """An IPv4 header without options. Its length and checksum are filled in."""

    source: str
    destination: str
    protocol: int

    def names(self) -> Iterator[str]:
        yield from _IN_TEXT.findall(self.source + self.destination)

    def bits(self, fields: Fields, behind: str, before: tuple[Part, ...]) -> str:
        first = _bits(0x4500, 16) + _length(_IPV4_BYTES, behind) + _bits(0, 32)
        first += _bits(_TTL, 8) + _bits(self.protocol, 8)
        last = _address(self.source, fields) + _address(self.destination, fields)
        return first + _checksum(first + last) + last

    def pseudo_header(self, fields: Fields, length: str) -> str:
        """Returns what UDP's checksum covers beside the datagram. length: the bits of UDP's."""
        addresses = _address(self.source, fields) + _address(self.destination, fields)
        return addresses + _bits(self.protocol, 16) + length


@dataclass(frozen=True)
class Udp(Part):
    """A UDP header. Its length and checksum are filled in, the latter 0 unless IPv4 is right before
    it."""

    source: str
    destination: str

    def names(self) -> Iterator[str]:
        yield from _IN_TEXT.findall(self.source + self.destination)

    def bits(self, fields: Fields, behind: str, before: tuple[Part, ...]) -> str:
        length = _length(_UDP_BYTES, behind)
        start = _port(self.source, fields) + _port(self.destination, fields) + length
        if not before or not isinstance(before[-1], Ipv4):
            return start + _bits(0, 16)
        covered = before[-1].pseudo_header(fields, length) + start + behind.removesuffix(OPEN)
        checksum = _checksum(covered)
        return start + (checksum if "1" in checksum or "*" in checksum else "1" * 16)


def parse_format(text: str) -> Format:
    """Returns the format that `NAME = PART ...` describes. Raises FormatError."""
    name, equals, rest = text.partition("=")
    name = name.strip()
    if not equals or not _NAME.fullmatch(name):
        raise FormatError("a format is written `format NAME = PART ...`")
    if re.fullmatch(r"[0-9a-fA-F]+", name):
        raise FormatError(f"`{name}` is a hexadecimal number, and no name for a format")
    parts: list[Part] = []
    at, rest = 0, rest.rstrip()
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None:
            raise FormatError(f"`{rest[at:].split()[0]}` is no part of a format")
        parts.append(_part(match))
        at = match.end()
    return Format(name, tuple(parts))


def _part(match: re.Match[str]) -> Part:
    if match["digits"]:
        return Digits(match["digits"])
    if match["field"]:
        width = int(match["bits"])
        if not 0 < width <= 8 * MAX_BYTES:
            raise FormatError(f"`{match['field']}` cannot have {width} bits")
        return Field(match["field"], width, match["list"] is not None)
    arguments = [each.strip() for each in match["arguments"].split(",")]
    if match["header"] == "udp" and len(arguments) == 2:
        return Udp(*arguments)
    if match["header"] == "ipv4" and len(arguments) == 3 and arguments[2].isdigit():
        return Ipv4(arguments[0], arguments[1], int(arguments[2]) & 0xFF)
    raise FormatError("write ipv4(SOURCE, DESTINATION, PROTOCOL) and udp(SOURCE, DESTINATION)")


def parse_fields(words: list[str]) -> dict[str, str]:
    """Returns the fields that words like `slot=0` and `values=1,2,3` give. Raises FormatError."""
    fields: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise FormatError(f"`{word}` is not FIELD=VALUE")
        if name in fields:
            raise FormatError(f"`{name}` is given twice")
        fields[name] = value
    return fields


def _filled(text: str, fields: Fields) -> str | None:
    """Returns text with the values of its `{field}`s, or None if one of them may be anything."""
    if any(fields.get(name, "*") == "*" for name in _IN_TEXT.findall(text)):
        return None
    return _IN_TEXT.sub(lambda m: str(_number(fields[m[1]], m[1])), text)


def _address(text: str, fields: Fields) -> str:
    address = _filled(text, fields)
    if address is None:
        return "*" * 32
    numbers = address.split(".")
    if len(numbers) != 4 or not all(n.isdigit() and int(n) < 256 for n in numbers):
        raise FormatError(f"`{address}` is no IPv4 address")
    return "".join(_bits(int(n), 8) for n in numbers)


def _port(text: str, fields: Fields) -> str:
    port = _filled(text, fields)
    if port is None:
        return "*" * 16
    if not port.isdigit() or int(port) > 0xFFFF:
        raise FormatError(f"`{port}` is no port of UDP")
    return _bits(int(port), 16)


def _length(header_bytes: int, behind: str) -> str:
    """Returns a length in bytes, of a header and what is behind it, as 16 bits."""
    if behind.endswith(OPEN):
        return "*" * 16
    length = header_bytes + len(behind) // 8
    if length >= MAX_BYTES:
        raise FormatError(f"the packet is too long: {length} bytes")
    return _bits(length, 16)


def _checksum(bits: str) -> str:
    """Returns the Internet checksum (RFC 1071) of bits, which may be anything if one of them may
    be."""
    if "*" in bits:
        return "*" * 16
    padded = bits + "0" * (-len(bits) % 16)
    total = sum(int(padded[at : at + 16], 2) for at in range(0, len(padded), 16))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return _bits(total ^ 0xFFFF, 16)


def _number(text: str, name: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise FormatError(f"`{text}` is no number for `{name}`") from None


def _bits(number: int, width: int) -> str:
    return f"{number:0{width}b}"


def _nibble(bits: str) -> str:
    return "*" if "*" in bits else f"{int(bits, 2):x}"
