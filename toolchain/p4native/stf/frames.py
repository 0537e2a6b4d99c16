"""The packets of a script: those that it sends and those that it expects, in hexadecimal digits or
by the names of their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p4native.stf.formats import Format, FormatError, parse_fields


class StfError(Exception):
    """Raised for a script or command line that cannot be run. The command prints it as `file:line:
    error: ...` and returns exit code 2."""

    def __init__(self, message: str, line: int = 0):
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Packet:
    line: int
    port: int
    data: bytes


@dataclass(frozen=True)
class Expect:
    """An expected packet. nibbles: lower-case hexadecimal digits, in which `*` stands for any
    digit; None accepts any packets on the port."""

    line: int
    port: int
    nibbles: str | None
    exact: bool = False

    def matches(self, frame: bytes) -> bool:
        if self.nibbles is None:
            return True
        got = frame.hex()
        if len(got) < len(self.nibbles) or (self.exact and len(got) != len(self.nibbles)):
            return False
        return all(e in ("*", g) for e, g in zip(self.nibbles, got, strict=False))


def parse_named(line: int, form: Format, rest: str) -> Packet:
    """Returns the packet of `NAME port=1 FIELD=VALUE ...`, which is sent to this port."""
    try:
        fields = parse_fields(rest.split())
        port = fields.get("port", "")
        if not port.isdigit():
            raise FormatError(f"`{form.name}` needs the port to which it is sent, as in port=1")
        if not any(name == "port" for part in form.parts for name in part.names()):
            del fields["port"]
        nibbles = form.nibbles(fields)
        if "*" in nibbles:
            raise FormatError(f"`{form.name}` can only be expected: some of its digits may be any")
        return Packet(line, int(port), bytes.fromhex(nibbles))
    except FormatError as error:
        raise StfError(str(error), line) from None


def _nibbles(
    line: int, words: Sequence[str], formats: Mapping[str, Format], expected: bool, exact: bool
) -> str:
    """Returns the digits of a packet that is written in hexadecimal, or as a format's name with
    fields."""
    form = formats.get(words[0].lower()) if words else None
    if form is None:
        return "".join(words).lower()
    try:
        fields = parse_fields(list(words[1:]))
        if exact and (name := form.missing_list(fields)):
            raise FormatError(f"`{form.name}` needs values for `{name}`, since `$` ends the packet")
        return form.nibbles(fields, open_fields=expected)
    except FormatError as error:
        raise StfError(str(error), line) from None


def parse_frame(line: int, verb: str, rest: str, formats: Mapping[str, Format]) -> Packet | Expect:
    """Returns the packet of `packet PORT ...` or `expect PORT ...`."""
    words = rest.split()
    if not words or not words[0].isdigit():
        raise StfError(f"`{verb}` needs a port number", line)
    exact = verb == "expect" and len(words) > 1 and words[-1].endswith("$")
    if exact:
        words[-1] = words[-1][:-1]
    written = [word for word in words[1:] if word]
    nibbles = _nibbles(line, written, formats, verb == "expect", exact)
    allowed = "0123456789abcdef*" if verb == "expect" else "0123456789abcdef"
    wrong = [c for c in nibbles if c not in allowed]
    if wrong:
        raise StfError(f"`{wrong[0]}` is not a hexadecimal digit", line)
    if verb == "expect":
        return Expect(line, int(words[0]), nibbles if len(words) > 1 else None, exact)
    if len(nibbles) % 2:
        raise StfError(f"{len(nibbles)} hexadecimal digits are not whole bytes", line)
    return Packet(line, int(words[0]), bytes.fromhex(nibbles))
