"""The error of a command at the prompt, and of a word that it does not know."""

from __future__ import annotations

from collections.abc import Iterable

from agglab.testbed.base.problems import nearest, quote


class Refused(Exception):
    """Raised if a command at the prompt cannot be carried out. The message is one line that says
    why, or the report of a part that failed."""


def not_among(beginning: str, word: str, known: Iterable[str]) -> Refused:
    """Returns the refusal of a word that is none of the known ones. beginning: the words of the
    message before it, such as `no such link`."""
    names = list(known)
    near = nearest(word, names)
    return Refused(f"{beginning} {quote(word)}{near}; allowed: {', '.join(names) or 'none'}")
