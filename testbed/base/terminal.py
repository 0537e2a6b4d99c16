"""Handles output that may be closed, full or gone: the terminal, a pipe, a disk."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeGuard, cast

from agglab.testbed.base.exit_codes import INVALID, PASSED
from p4native.common.printable import plain
from p4native.common.whole_files import whole_file

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors of a file system that is full."""


def is_full(error: Exception) -> TypeGuard[OSError]:
    """Returns whether the error was caused by the user's disk being full or by the user's quota,
    and not by a mistake in Agglab."""
    return isinstance(error, OSError) and error.errno in FULL


def put(text: str, out: Path | None) -> int:
    """Prints a text, or writes it to a file that the user names, wholly or not at all. Returns the
    exit code of the command whose result it is. If the file cannot be written, a line on stderr
    says why."""
    if out is None:
        sys.stdout.write(text)
        return PASSED
    try:
        with whole_file(out) as path:
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        print(plain(f"cannot write {out}: {error.strerror}"), file=sys.stderr)
        return INVALID
    return PASSED


def cannot_write(error: OSError, path: Path | str) -> str:
    """Returns a message of one line. path: the file, which is used if the error does not name
    one."""
    return f"cannot write {error.filename or path}: {error.strerror}"


def outlet(stream: TextIO) -> TextIO:
    """Returns a stream that writes to `stream` as long as it can, and discards output
    afterwards."""
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
    """Opens those of the file descriptors 0 to 2 that are closed. Otherwise files that are opened
    later would get these numbers, and programs would write their output into these files. Also
    makes streams replace characters that the terminal does not have."""
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
