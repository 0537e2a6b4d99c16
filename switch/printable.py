"""Text of strangers for logs, terminals and messages."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line, with escapes for what a terminal would act on instead of showing:
    line breaks, control characters, changes of direction, halves of surrogate pairs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
