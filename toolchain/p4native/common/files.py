"""Reads files that a user names. Only regular files up to a size limit are read: reading a pipe may
never end, and a device such as /dev/zero would fill the memory."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

SIZE_MAX_BYTES = 256 << 20


def read_bytes(path: str | Path, size_max_bytes: int = SIZE_MAX_BYTES) -> bytes:
    """Returns the contents of a regular file. Raises OSError with a reason for anything else."""
    # O_NONBLOCK: opening a pipe that nobody writes to must not wait; regular files ignore it.
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        if found.st_size > size_max_bytes:
            raise OSError(errno.EFBIG, f"is larger than {size_max_bytes >> 20} MiB", str(path))
        content = file.read(size_max_bytes + 1)  # it may grow while it is read
    if len(content) > size_max_bytes:
        raise OSError(errno.EFBIG, f"is larger than {size_max_bytes >> 20} MiB", str(path))
    return content


def read_text(path: str | Path, size_max_bytes: int = SIZE_MAX_BYTES) -> str:
    """Returns the file's contents as text. Raises UnicodeDecodeError if they are not UTF-8."""
    return read_bytes(path, size_max_bytes).decode()
