"""Collects lines of C with indentation. This module also has the only functions that make C of a
program's strings: `Names` makes identifiers, `quoted` makes literals, and `comment` makes
comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from p4native.switch.detail import Detail
from p4native.switch.errors import ProgramError
from p4native.switch.translate.opaque_string import OpaqueString, plain_text

MAX_NAME = 48
MAX_SHOWN = 120
MAX_ARRAY_BYTES = 4 << 20
MAX_C_BYTES = 16 << 20
_IN_COMMENTS = re.compile(r"\*(?=/)|/(?=\*)|\?(?=\?)")
"""The first characters of pairs that begin or end a comment or begin a trigraph."""


def shown(text: str) -> str:
    """Returns a program's string on one line of ASCII, with escapes for control characters and the
    like."""
    return plain_text(text).encode("unicode_escape").decode()[:MAX_SHOWN]


def comment(text: str) -> str:
    """Returns a program's string in a form that is safe in a C comment of one line."""
    return _IN_COMMENTS.sub(r"\g<0> ", shown(text))


def quoted(*parts: str | OpaqueString) -> str:
    """Returns one C string literal of the parts, one after the other. Plain strings, which the
    translator made, stay as they are. Strings of the program become what shown() returns."""
    whole = "".join(part if isinstance(part, str) else shown(part) for part in parts)  # type: ignore[arg-type]
    return c_bytes(whole.encode())


def c_bytes(data: bytes) -> str:
    """Returns bytes as a C string literal, which is one NUL longer than the data."""
    return '"' + "".join(map(_escaped, data)) + '"'


def _escaped(byte: int) -> str:
    # Octal escapes end after three digits; `?` could begin a trigraph.
    character = chr(byte)
    plain = character.isascii() and character.isprintable() and character not in '\\"?'
    return character if plain else f"\\{byte:03o}"


def u64(value: int) -> str:
    """Returns an unsigned 64-bit literal of the value modulo 2^64."""
    value %= 1 << 64
    return f"UINT64_C({value})" if value < 10 else f"UINT64_C({value:#x})"


def access(pointer: str, member: str) -> str:
    """Returns C that accesses a member of the struct to which a pointer points. pointer: a name or
    `&lvalue`."""
    return f"{pointer[1:]}.{member}" if pointer.startswith("&") else f"{pointer}->{member}"


class Names:
    """The C identifiers of a program's names. Equal names get the same identifier, and different
    names different ones. An identifier contains the name itself if that is free, otherwise a
    numbered form.

    The prefix `p4_` is reserved for the program: no name of the runtime, the C library or the
    compiler has it at its beginning or after an underscore.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._used: set[str] = set()

    def make(self, prefix: str, name: str) -> str:
        """Returns `<prefix>_p4_<name>`. The prefix says what kind of object has the name."""
        if name not in self._known:
            self._known[name] = self._new(name)
        return f"{prefix}_{self._known[name]}" if prefix else self._known[name]

    def _new(self, name: str) -> str:
        base = "p4_" + re.sub(r"[^A-Za-z0-9_]", "_", plain_text(name))[:MAX_NAME]
        unique, number = base, 1
        while unique in self._used:
            number += 1
            unique = f"{base}__{number}"
        self._used.add(unique)
        return unique


class Writer:
    """A collector of lines of C. detail: what the program reports. sources: whether comments show
    the P4 text."""

    def __init__(self, detail: Detail = Detail.NOTHING, sources: bool = False) -> None:
        self.detail = detail
        self.sources = sources
        self.lines: list[str] = []
        self.depth = 0
        self.temporaries = 0
        self.array_bytes = 0

    def array(self, name: str, count: int, kind: str = "uint8_t") -> None:
        """Writes a local array. All arrays of a program share a thread's stack, since its functions
        may be inlined into one. Raises ProgramError if they need more than the stack has."""
        self.array_bytes += count * (8 if kind == "uint64_t" else 1)
        if self.array_bytes > MAX_ARRAY_BYTES:
            raise ProgramError(
                "", f"its wide values need more than {MAX_ARRAY_BYTES} bytes of stack"
            )
        self.line(f"{kind} {name}[{count}];")

    def line(self, text: str = "") -> None:
        self.lines.append("\t" * self.depth + text if text else "")

    def remark(self, source: str) -> None:
        """Writes the P4 text of what follows as a comment."""
        if self.sources and source:
            self.line(f"/* {comment(source)} */")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:;")

    def temporary(self, prefix: str = "t") -> str:
        self.temporaries += 1
        return f"{prefix}{self.temporaries}"

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Writes `head {` before the code of the `with` block, and `tail` after it."""
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        self.line(head)
        with self.block(""):
            yield
        self.line()

    def text(self) -> str:
        """Returns the text. Raises ProgramError if the text is too long for a compiler."""
        if sum(map(len, self.lines)) > MAX_C_BYTES:
            raise ProgramError("", f"it is more than {MAX_C_BYTES >> 20} MiB as C")
        return "\n".join(self.lines) + "\n"
