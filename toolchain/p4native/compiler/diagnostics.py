"""Collects the errors and warnings about a program (class Diagnostics), and prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from p4native.compiler.source import Position, read_source

ERROR = "error"
WARNING = "warning"
MAX_ERRORS = 100
MAX_LINE_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message to the user. level: "error" or "warning". hint: the remedy, if known."""

    level: str
    position: Position
    message: str
    hint: str = ""
    kind: str = ""


@dataclass(slots=True)
class Diagnostics:
    """The errors and warnings reported so far. A message about the same place is kept only once.

    disabled: the kinds of warnings to leave out. promoted: the kinds of warnings that count as
    errors.
    """

    entries: list[Diagnostic] = field(default_factory=list)
    disabled: set[str] = field(default_factory=set)
    promoted: set[str] = field(default_factory=set)
    all_warnings_are_errors: bool = False
    _seen: set[tuple[Position, str]] = field(default_factory=set)
    _errors: int = 0

    def error(self, position: Position, message: str, hint: str = "") -> None:
        self.add(Diagnostic(ERROR, position, message, hint))

    def warning(self, position: Position, message: str, hint: str = "", kind: str = "") -> None:
        """Adds a warning. kind: the name by which `--Wdisable=kind` and `--Werror=kind` select
        it."""
        if kind in self.disabled:
            return
        promoted = self.all_warnings_are_errors or kind in self.promoted
        self.add(Diagnostic(ERROR if promoted else WARNING, position, message, hint, kind))

    def unsupported(self, position: Position, construct: str, hint: str = "") -> None:
        """Adds an error about a construct that this compiler knows but cannot translate."""
        self.error(position, f"not supported yet: {construct}", hint)

    @property
    def error_count(self) -> int:
        return self._errors

    @property
    def failed(self) -> bool:
        return self._errors > 0

    def add(self, diagnostic: Diagnostic) -> None:
        key = (diagnostic.position, diagnostic.message)
        if key not in self._seen:
            self._seen.add(key)
            self.entries.append(diagnostic)
            self._errors += diagnostic.level == ERROR


def render(entries: Iterable[Diagnostic], sources: dict[str, str] | None = None) -> str:
    """Returns the text for a terminal: `file:line:col: level: message`, the source line, a caret
    and the hint.

    sources: file name -> text, for files that are not on disk (stdin, tests).
    """
    lines_of: dict[str, Sequence[str]] = {
        name: text.split("\n") for name, text in (sources or {}).items()
    }
    out: list[str] = []
    for entry in entries:
        out.extend(map(_shown, _render_one(entry, lines_of)))
    return "\n".join(out) + ("\n" if out else "")


def _shown(line: str) -> str:
    """Returns a line with a mark in place of each character that is not printable or that a
    terminal would act on. The columns stay the same."""
    return "".join(c if c == "\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def _render_one(entry: Diagnostic, lines_of: dict[str, Sequence[str]]) -> list[str]:
    where = "" if entry.position.line == 0 else f"{entry.position}: "
    tag = f" [--Wdisable={entry.kind}]" if entry.kind and entry.level == WARNING else ""
    out = [f"{where}{entry.level}: {entry.message}{tag}"]
    line = _source_line(entry.position, lines_of)
    if line is not None:
        out += _cropped(line, _caret(line, entry.position))
    if entry.hint:
        out.append(f"  hint: {entry.hint}")
    return out


def _source_line(position: Position, lines_of: dict[str, Sequence[str]]) -> str | None:
    if position.line == 0:
        return None
    if position.file not in lines_of:
        lines_of[position.file] = _read_lines(position.file)
    lines = lines_of[position.file]
    return lines[position.line - 1].rstrip("\r") if position.line <= len(lines) else None


def _read_lines(name: str) -> Sequence[str]:
    try:
        return read_source(name).split("\n")
    except OSError:
        return ()


def _cropped(line: str, caret: str) -> list[str]:
    """Returns the part of a long line around the place that its caret marks, with marks where text
    is left out, and the caret's line for it."""
    if len(line) <= MAX_LINE_WIDTH:
        return [line, caret]
    start = max(0, len(caret) - len(caret.lstrip()) - MAX_LINE_WIDTH // 2)
    end = start + MAX_LINE_WIDTH
    before, after = "..." * (start > 0), "..." * (end < len(line))
    return [before + line[start:end] + after, " " * len(before) + caret[start:end]]


def _caret(line: str, position: Position) -> str:
    """Returns the line that marks a place: spaces, and a caret under each character of the place.
    Tabs of the source line stay tabs, so that the columns align."""
    start = min(position.column - 1, len(line))
    indent = re.sub(r"[^\t]", " ", line[:start])
    return indent + "^" * max(1, min(position.length, len(line) - start))


def summary(diagnostics: Diagnostics) -> str:
    count = diagnostics.error_count
    return f"{count} error{'s' * (count != 1)}" if count else ""


def print_all(diagnostics: Diagnostics, stream: TextIO, max_errors: int = MAX_ERRORS) -> None:
    """Prints all warnings and the first `max_errors` errors. Further errors are only counted."""
    errors = 0
    shown: list[Diagnostic] = []
    for entry in diagnostics.entries:
        errors += entry.level == ERROR
        if entry.level != ERROR or errors <= max_errors:
            shown.append(entry)
    stream.write(render(shown))
    if diagnostics.failed:
        stream.write(summary(diagnostics) + "\n")
