"""Lines of C with indentation, and names that C accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from switch.detail import Detail

MAX_NAME = 48


def identifier(name: str) -> str:
    """A P4 name as part of a C identifier."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)[:MAX_NAME]


def comment(name: str) -> str:
    """A P4 name as it may stand in a C comment."""
    return re.sub(r"[^A-Za-z0-9_.$ \[\]-]", "?", name).replace("??", "?")[:100]


def c_bytes(data: bytes) -> str:
    """Bytes as a C string literal (one NUL longer than the data)."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def u64(value: int) -> str:
    """An unsigned 64-bit literal of value modulo 2^64."""
    value %= 1 << 64
    return f"UINT64_C({value})" if value < 10 else f"UINT64_C({value:#x})"


def access(pointer: str, member: str) -> str:
    """The member of what a pointer, a name or `&lvalue`, points to."""
    return f"{pointer[1:]}.{member}" if pointer.startswith("&") else f"{pointer}->{member}"


class Names:
    """Unique identifiers: the P4 name where it is free, numbered where it is not."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def make(self, prefix: str, name: str) -> str:
        base = prefix + identifier(name)
        unique, number = base, 1
        while unique in self.used:
            number += 1
            unique = f"{base}__{number}"
        self.used.add(unique)
        return unique


class Writer:
    """Collects lines of C; `detail` is what the program shall say, `sources` asks for comments."""

    def __init__(self, detail: Detail = Detail.NOTHING, sources: bool = False) -> None:
        self.detail = detail
        self.sources = sources
        self.lines: list[str] = []
        self.depth = 0
        self.temporaries = 0

    def line(self, text: str = "") -> None:
        self.lines.append("\t" * self.depth + text if text else "")

    def remark(self, source: str) -> None:
        """The P4 text of what follows, as a comment."""
        if self.sources and source:
            plain = re.sub(r"[^ -~]|\\|\?\?", "?", source).replace("*/", "* /").replace("/*", "/ *")
            self.line(f"/* {plain} */")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:;")

    def temporary(self, prefix: str = "t") -> str:
        self.temporaries += 1
        return f"{prefix}{self.temporaries}"

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """`head {` ... `}`."""
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
        return "\n".join(self.lines) + "\n"
