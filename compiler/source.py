"""Places in source text: the one value every token, node and diagnostic carries."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """A run of `length` characters; line and column count from 1, file is as the user named it."""

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Position("<compiler>", 0, 0)
