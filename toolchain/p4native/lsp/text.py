"""The text of an open file, with the positions that editors use: lines and characters are counted
from 0, and characters in units of UTF-16."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n|\n|\r")


class Place(NamedTuple):
    """A place between two characters. character: in units of UTF-16."""

    line: int
    character: int


class Span(NamedTuple):
    start: Place
    end: Place


class Text:
    """The text of a file. It never changes; an edit makes another one."""

    def __init__(self, content: str) -> None:
        self.content = content

    @cached_property
    def starts(self) -> list[int]:
        """The index at which each line begins."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.content))]

    @cached_property
    def plain(self) -> Text:
        """The text with `\n` at the end of each line. All places stay the same."""
        return Text(_LINE_END.sub("\n", self.content)) if "\r" in self.content else self

    def line(self, number: int) -> str:
        """Returns a line without its end, or an empty string for a line behind the last one."""
        if not 0 <= number < len(self.starts):
            return ""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.content)
        return self.content[self.starts[number] : end].rstrip("\r\n")

    def index(self, place: Place) -> int:
        """Returns the index of a place. What lies behind the end of a line or of the text counts as
        this end, as the protocol wants it."""
        if place.line >= len(self.starts):
            return len(self.content)
        line = self.line(place.line)
        return self.starts[place.line] + _column(line, place.character)

    def place(self, index: int) -> Place:
        number = bisect_right(self.starts, index) - 1
        return Place(number, units(self.content[self.starts[number] : index]))

    def edited(self, span: Span, replacement: str) -> Text:
        """Returns the text with `replacement` in place of a span. The ends of a span may be in any
        order."""
        first, last = sorted((self.index(span.start), self.index(span.end)))
        return Text(self.content[:first] + replacement + self.content[last:])

    def followed(self, place: Place, later: Text) -> Place:
        """Returns where a place of this text lies in a later one, if everything that differs was
        replaced at once. A place inside of it moves to its beginning."""
        if later.content == self.content:
            return place
        index = self.index(place)
        before = _common_start(self.content, later.content)
        rest = min(len(self.content), len(later.content)) - before
        after = _common_end(self.content, later.content, rest)
        if index >= len(self.content) - after and index > before:
            return later.place(index + len(later.content) - len(self.content))
        return later.place(min(index, before))


def units(text: str) -> int:
    """Returns the length of text in units of UTF-16."""
    return len(text) + (0 if text.isascii() else sum(c > "\uffff" for c in text))


def _column(line: str, character: int) -> int:
    """Returns the index in a line of a position in units of UTF-16."""
    if line.isascii():
        return min(character, len(line))
    passed = 0
    for index, each in enumerate(line):
        if passed >= character:
            return index
        passed += 2 if each > "\uffff" else 1
    return len(line)


def _common_start(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str, limit: int) -> int:
    """Returns how many characters both texts have in common at their ends, at most `limit`."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
