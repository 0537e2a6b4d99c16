"""Makes text from outside safe for logs, terminals and messages."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    """Returns the text on one line, with escapes for characters on which a terminal would act: line
    breaks, control characters, changes of direction and halves of surrogate pairs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def plain(text: str) -> str:
    """Returns text that is safe to print on a terminal. The text may come from untrusted sources,
    such as logs of programs, sources and names."""
    return re.sub(r"[^\n\t]+", lambda part: printable(part[0]), text)


def one_line(text: str, limit: int = 400) -> str:
    """Returns the text without line breaks and control characters, cut at `limit` characters."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
