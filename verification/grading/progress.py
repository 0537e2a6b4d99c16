"""Keeps what a student has done: which exercises have all points, and how many hints are open. It
is a file of the user's, not a grade."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from p4native.common.whole_files import whole_file

DONE, HINTS = "done", "hints"


def file() -> Path:
    """Returns the path of the file: in `$XDG_STATE_HOME/agglab`, or `~/.local/state/agglab`."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local/state") / "agglab" / "labs.json"


def done() -> set[str]:
    """Returns the names of the exercises that have had all points."""
    return set(_read()[DONE])


def hints_open(lab: str) -> int:
    """Returns how many hints of an exercise are open."""
    count = _read()[HINTS].get(lab, 0)
    return count if isinstance(count, int) else 0


def note_done(lab: str) -> None:
    """Notes that an exercise has all points. If the file cannot be written, nothing is noted."""
    known = _read()
    known[DONE] = sorted({*known[DONE], lab})
    _write(known)


def open_hint(lab: str, count: int) -> None:
    """Notes that this many hints of an exercise are open."""
    known = _read()
    known[HINTS][lab] = count
    _write(known)


def _read() -> dict[str, Any]:
    try:
        known = json.loads(file().read_text(encoding="utf-8"))
        return {DONE: list(map(str, known[DONE])), HINTS: dict(known[HINTS])}
    except (OSError, ValueError, KeyError, TypeError):
        return {DONE: [], HINTS: {}}


def _write(known: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        file().parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file()) as part:
            part.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
