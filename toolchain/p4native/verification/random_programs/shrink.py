"""Makes programs and scripts smaller while a test of them holds. Lines and blocks are removed,
blocks lose their conditions, and expressions are replaced by one of their operands.

The module knows nothing of P4 except that braces and parentheses match. A program that no longer
compiles fails the test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

Test = Callable[[str], bool]
OPERATOR = re.compile(r" (?:[-+*/%&|^]|<<|>>|==|!=|<=?|>=?|&&|\|\||\+\+|\|\+\||\|-\||\?|:) ")


def shrink_lines(text: str, test: Test) -> str:
    """Removes lines, in large groups first, as long as `test` holds. Braces stay balanced."""
    lines = text.splitlines()
    size = max(1, len(lines) // 2)
    while size:
        at = 0
        while at < len(lines):
            end = at + size
            cut = lines[:at] + lines[end:]
            if _balanced(lines[at:end]) and test("\n".join(cut) + "\n"):
                lines = cut
            else:
                at += max(1, size // 2)
        size //= 2
    return "\n".join(lines) + "\n"


def shrink_program(text: str, test: Test) -> str:
    """Shrinks a program until nothing more can be removed: whole blocks, lines, the heads of
    blocks, and expressions."""
    before = ""
    while before != text:
        before = text
        text = _try_each(text, _without_blocks, test)
        text = shrink_lines(text, test)
        for candidates in (_opened_blocks, _simpler):
            text = _try_each(text, candidates, test)
    return text


def _try_each(text: str, candidates: Callable[[str], Iterator[str]], test: Test) -> str:
    """Replaces the text by each candidate for which the test holds. After a replacement, continues
    behind the place of that replacement."""
    number, found = 0, True
    while found:
        found = False
        for candidate in islice(candidates(text), number, None):
            if len(candidate) < len(text) and test(candidate):
                text, found = candidate, True
                break
            number += 1
    return text


def _balanced(lines: list[str]) -> bool:
    depth = 0
    for line in lines:
        for sign in line:
            depth += (sign == "{") - (sign == "}")
            if depth < 0:
                return False
    return depth == 0


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yields (first line, last line) of every block. A line `} else {` ends one block and begins
    another."""
    opened: list[int] = []
    for at, line in enumerate(lines):
        if line.startswith("}") and opened:
            yield opened.pop(), at
        if line.endswith("{"):
            opened.append(at)


def _without_blocks(text: str) -> Iterator[str]:
    lines = text.splitlines()
    for first, last in sorted(_blocks(lines), key=lambda b: b[0] - b[1]):
        kept = ["}"] if lines[first].startswith("}") else []
        kept += ["else {"] if lines[last].startswith("} else") and not kept else []
        yield "\n".join([*lines[:first], *kept, *lines[last + 1 :]]) + "\n"


def _opened_blocks(text: str) -> Iterator[str]:
    """Yields the text with the contents of a block in place of the block. Of an if with an else,
    only one of the two parts can be opened."""
    lines = text.splitlines()
    for first, last in _blocks(lines):
        if lines[last] == "}" and not lines[first].startswith("}"):
            inner = lines[first + 1 : last]
            yield "\n".join([*lines[:first], *inner, *lines[last + 1 :]]) + "\n"


def _groups(line: str) -> Iterator[tuple[int, int]]:
    opened: list[int] = []
    for at, sign in enumerate(line):
        if sign == "(":
            opened.append(at)
        elif sign == ")" and opened:
            yield opened.pop(), at + 1


def _simpler(text: str) -> Iterator[str]:
    """Yields the text with each parenthesized expression replaced by one of its operands, or a cast
    by its operand."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        for start, end in sorted(_groups(line), key=lambda g: g[0] - g[1]):
            for part in _operands(line[start + 1 : end - 1]):
                new = line[:start] + part + line[end:]
                yield "\n".join([*lines[:number], new, *lines[number + 1 :]]) + "\n"


def _operands(inner: str) -> Iterator[str]:
    depth, last, parts = 0, 0, []
    for at, sign in enumerate(inner):
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0 and (found := OPERATOR.match(inner, at)):
            parts.append(inner[last:at])
            last = found.end()
    parts.append(inner[last:])
    if len(parts) > 1:
        yield from parts
    elif inner.startswith("("):  # a cast: ((type)value)
        yield inner[inner.index(")") + 1 :]
    elif inner[:1] in "-~!":
        yield inner[1:]
