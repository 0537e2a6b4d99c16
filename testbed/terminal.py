"""Where output goes may be closed, full or gone: the terminal, a pipe, a disk."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeGuard, cast

from agglab.switch.printable import printable

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors of a file system that is full."""


def is_full(error: Exception) -> TypeGuard[OSError]:
    """Whether the user's disk or quota is the cause, and no mistake of ours."""
    return isinstance(error, OSError) and error.errno in FULL


def cannot_write(error: OSError, path: Path | str) -> str:
    """One line; path: where it was, if the error does not know."""
    return f"cannot write {error.filename or path}: {error.strerror}"


def plain(text: str) -> str:
    """Lines that may hold words of strangers (logs of programs, sources, names), for a terminal:
    it shows them, whatever they are."""
    return re.sub(r"[^\n\t]+", lambda part: printable(part[0]), text)


def outlet(stream: TextIO) -> TextIO:
    """Writes to `stream` as long as it can; then to nobody."""
    return cast(TextIO, _Outlet(stream))


class _Outlet(io.TextIOBase):
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, text: str) -> int:
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())  # what is buffered has to go somewhere, too
            os.close(nowhere)


def prepare() -> None:
    """Descriptors 0 to 2 are open, or the next files would take their numbers and programs would
    write into them; characters that the terminal does not have are replaced."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
