"""Removes the files that a switch leaves behind: its sockets, and the file for statistics if it is
still empty.

A switch that has dropped its privileges may not be allowed to remove what it made before. A
separate process that keeps the privileges therefore removes the files after the switch has ended,
for whatever reason. This process is told the paths before the switch drops its privileges, and
accepts no more paths afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
from pathlib import Path

from p4native.common.contexts import Closing


class Cleanup(Closing):
    """The sockets and files to remove at the end. apart: whether a separate process removes them.
    That process must be started before any thread."""

    def __init__(self, apart: bool) -> None:
        self._made: list[tuple[str, int, int]] = []
        self._child = 0
        if apart:
            self._fork()

    def _fork(self) -> None:
        reader, self._writer = os.pipe()
        self._child = os.fork()
        if self._child:
            os.close(reader)
            return
        try:
            _wait_and_remove(reader)
        finally:
            os._exit(0)

    def add(self, path: str | Path) -> None:
        """Adds a socket or file that has just been created at this path."""
        with contextlib.suppress(OSError):
            found = os.lstat(path)
            self._made.append((os.path.abspath(path), found.st_dev, found.st_ino))

    def complete(self) -> None:
        """Tells the separate process that no more paths will be added. After this call, privileges
        may be dropped."""
        if self._child:
            _write_all(self._writer, json.dumps(self._made).encode() + b"\n")

    def close(self) -> None:
        """Removes all added sockets and files now."""
        for made in self._made:
            with contextlib.suppress(PermissionError):
                _remove(*made)
        if self._child:
            os.close(self._writer)
            os.waitpid(self._child, 0)
            self._child = 0


def _wait_and_remove(reader: int) -> None:
    """Runs in the separate process: reads one line of paths, waits until the switch has ended, and
    removes the paths."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Whoever waits for the end of the switch's output must not wait for this process.
    os.closerange(0, reader)
    os.closerange(reader + 1, os.sysconf("SC_OPEN_MAX"))
    with open(reader, "rb") as told:
        line = told.readline()
        while told.read(1 << 16):
            pass
    for path, device, inode in json.loads(line or "[]"):
        _remove(path, device, inode)


def _remove(path: str, device: int, inode: int) -> None:
    """Removes the path, unless something else has taken its place or it is a file with contents."""
    with contextlib.suppress(FileNotFoundError):
        found = os.lstat(path)
        ours = (found.st_dev, found.st_ino) == (device, inode)
        if ours and (stat.S_ISSOCK(found.st_mode) or not found.st_size):
            os.unlink(path)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
