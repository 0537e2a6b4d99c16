"""The program's source text, for what is quoted from it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from compiler.source import Position


@lru_cache(maxsize=64)
def lines_of(file: str) -> tuple[str, ...]:
    """A source file's lines; none if it cannot be read (any more)."""
    try:
        return tuple(Path(file).read_text(encoding="utf-8", errors="replace").split("\n"))
    except OSError:
        return ()


def text_at(where: Position) -> str:
    """The characters a position covers."""
    lines = lines_of(where.file)
    if not 0 < where.line <= len(lines):
        return ""
    return lines[where.line - 1][where.column - 1 : where.column - 1 + where.length]
