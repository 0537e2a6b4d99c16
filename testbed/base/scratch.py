"""Scratch folders for the sockets of a run. Their paths are short and private, and they are removed
afterwards, even after `kill -9`.

They are in a folder to which only this user can write. A running run holds a lock on its scratch
folder. A folder whose lock nobody holds is stale. All paths outside it that the run has noted in it
are then stale as well. Only stale folders and paths are removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agglab.testbed.base.errors import MachineLacks
from p4native.common.private_folders import state_folder, why_not_ours

PREFIX = "run-"
LOCK, GUARD, ELSEWHERE = "lock", "guard", "elsewhere.jsonl"


def check_usable() -> None:
    """Raises MachineLacks if this user cannot have scratch folders."""
    with _guard():
        pass


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yields a new private folder, which is locked while the block runs and removed after it.

    Stale folders are removed first. Raises MachineLacks if this user cannot have scratch folders.
    """
    remove_stale()
    scratch, lock = _make()
    try:
        yield scratch
    finally:
        with _guard():
            shutil.rmtree(scratch, ignore_errors=True)
        os.close(lock)


def note_elsewhere(scratch: Path, path: Path) -> None:
    """Notes that `path`, which is outside the scratch folder, must also be removed when the run
    ends."""
    with (scratch / ELSEWHERE).open("a") as notes:
        notes.write(json.dumps(os.fsdecode(path.absolute())) + "\n")


def in_use() -> list[Path]:
    """Returns the scratch folders of this user's runs that are going on."""
    with contextlib.suppress(MachineLacks), _guard() as state:
        folders = [each for each in sorted(state.glob(f"{PREFIX}*")) if _is_folder(each)]
        return [each for each in folders if _is_locked(each / LOCK)]
    return []


def remove_stale() -> list[str]:
    """Removes the scratch folders of runs that were killed, and the paths outside them that these
    runs noted. Returns all removed paths. If this user has no state folder, there is nothing to
    remove."""
    removed: list[str] = []
    with contextlib.suppress(MachineLacks), _guard() as state:
        for scratch in sorted(state.glob(f"{PREFIX}*")):
            if _is_folder(scratch) and not _is_locked(scratch / LOCK):
                # The last processes of a run just killed may still write there: then next time.
                gone, stay = _remove_elsewhere(scratch)
                removed += gone
                if not stay:
                    removed.append(str(scratch))
                    shutil.rmtree(scratch, ignore_errors=True)
    return removed


@contextlib.contextmanager
def _guard() -> Iterator[Path]:
    """Locks the folder that holds all scratch folders, so that only one process at a time creates
    or removes scratch folders."""
    state = state_folder("agglab")
    try:
        state.mkdir(mode=0o700, exist_ok=True)
        why = why_not_ours(state)
        if why is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            guard = os.open(state / GUARD, flags, 0o600)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise MachineLacks(
            f"a folder for scratch files ({state}: {why})",
            "remove it, or set XDG_RUNTIME_DIR to a folder that belongs to you",
        )
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield state
    finally:
        os.close(guard)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_locked(path: Path) -> bool:
    """Returns whether a living process holds the lock. If a run was killed early, the file may not
    exist."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _remove_elsewhere(scratch: Path) -> tuple[list[str], list[str]]:
    """Removes the folders that the run noted and that still exist. Returns the paths of those that
    are gone, and of those that could not be removed."""
    notes = scratch / ELSEWHERE
    gone: list[str] = []
    stay: list[str] = []
    for line in notes.read_text().splitlines() if notes.is_file() else ():
        with contextlib.suppress(ValueError):  # the run was killed in the middle of the line
            path = Path(json.loads(line))
            if _is_folder(path):
                shutil.rmtree(path, ignore_errors=True)
                (stay if path.exists() else gone).append(str(path))
    return gone, stay


def _make() -> tuple[Path, int]:
    """Returns a new folder and the descriptor that keeps it locked."""
    with _guard() as state:
        scratch = Path(tempfile.mkdtemp(prefix=PREFIX, dir=state))
        lock = os.open(scratch / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return scratch, lock
