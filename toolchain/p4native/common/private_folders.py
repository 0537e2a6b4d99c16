"""Folders that only the current user controls. They are for files that are loaded as code, and for
the sockets on which programs listen."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def state_folder(program: str) -> Path:
    """Returns the folder for the sockets of a program. Its path is short and ends with the
    program's name, and the machine empties it when it boots."""
    if os.geteuid() == 0:
        return Path("/run") / program
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and why_not_ours(Path(runtime)) is None:
        return Path(runtime) / program
    return Path(tempfile.gettempdir()) / f"{program}-{os.geteuid()}"


def why_not_ours(path: Path, follow_link: bool = False) -> str | None:
    """Returns the reason why another user could replace the folder at `path`, or None if no other
    user could. follow_link: whether a symbolic link at `path` is followed."""
    try:
        found = path.stat() if follow_link else path.lstat()
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}"
    return "others may write to it" if found.st_mode & WRITABLE_BY_OTHERS else None


def make_private(path: Path) -> None:
    """Makes a folder that only the current user can enter, and the folders above it. The folder may
    already exist. Raises OSError if another user controls it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    why = why_not_ours(path)
    if why is not None:
        raise OSError(errno.EPERM, why, str(path))
    path.chmod(0o700)
