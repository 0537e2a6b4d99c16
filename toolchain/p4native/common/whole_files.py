"""Files that a user names and that are written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """Yields the path to which the content of `out` is to be written: a temporary file beside it,
    which replaces `out` when the block ends, and is removed if the block raises an exception.
    What is not a regular file, such as /dev/null, a pipe, or a symbolic link such as /dev/stdout,
    is never replaced: the content is written to it directly."""
    if out.is_symlink() or (out.exists() and not out.is_file()):
        yield out
        return
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
