"""Reads source text, and describes places in it. Every token and every node of the tree has such a
place."""

from __future__ import annotations

import errno
import os
import stat
from typing import NamedTuple

MAX_TEXT_BYTES = 64 << 20


class Position(NamedTuple):
    """A place in a file: `length` characters on one line. line and column: counted from 1. file:
    the file's name as the user gave it."""

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Position("<compiler>", 0, 0)


def read_source(path: str) -> str:
    """Returns the text of a file.

    Raises OSError for anything but a regular file of at most MAX_TEXT_BYTES: a pipe may never end,
    and a `# line` marker may name any file of the machine.
    """
    # O_NONBLOCK: opening a pipe that nobody writes to must not wait; regular files ignore it.
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", path)
        text = file.read(MAX_TEXT_BYTES + 1)
    if len(text) > MAX_TEXT_BYTES:
        raise OSError(errno.EFBIG, f"is larger than {MAX_TEXT_BYTES >> 20} MB", path)
    return text.decode("utf-8", "replace")
