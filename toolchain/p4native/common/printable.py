"""Makes text from outside safe for logs, terminals and messages."""

from __future__ import annotations


def printable(text: str) -> str:
    """Returns the text on one line, with escapes for characters on which a terminal would act: line
    breaks, control characters, changes of direction and halves of surrogate pairs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
