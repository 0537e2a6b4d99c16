"""Reads the program's source text, parts of which BMv2 JSON quotes."""

from __future__ import annotations

from functools import lru_cache

from p4native.compiler.source import Position, read_source


@lru_cache(maxsize=64)
def lines_of(file: str) -> tuple[str, ...]:
    """Returns a source file's lines, or no lines if the file cannot be read."""
    try:
        return tuple(read_source(file).split("\n"))
    except OSError:
        return ()


def text_at(where: Position) -> str:
    """Returns the characters that a position covers."""
    lines = lines_of(where.file)
    if not 0 < where.line <= len(lines):
        return ""
    return lines[where.line - 1][where.column - 1 : where.column - 1 + where.length]
