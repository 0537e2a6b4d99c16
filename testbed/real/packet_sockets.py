"""Reads from the kernel how many frames were dropped because another process's packet sockets had
no room for them."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

# pidfd_getfd(2) has this number on every architecture; Python has no function for it.
PIDFD_GETFD = 438
# linux/if_packet.h: reading PACKET_STATISTICS begins with packets and drops, and zeroes both.
SOL_PACKET, PACKET_STATISTICS = 263, 6
STATISTICS = struct.Struct("II")

_libc = ctypes.CDLL(None, use_errno=True)


def take_drops(pid: int) -> int:
    """Returns the frames dropped since the last call, over all packet sockets of a process. Returns
    0 if the process has ended or this process may not inspect it."""
    try:
        return sum(_take_drops(found) for found in _sockets(pid))
    except OSError:
        return 0


def _take_drops(found: socket.socket) -> int:
    with found:
        if found.family != socket.AF_PACKET:
            return 0
        counted = found.getsockopt(SOL_PACKET, PACKET_STATISTICS, STATISTICS.size)
        return int(STATISTICS.unpack(counted)[1])


def _sockets(pid: int) -> Iterator[socket.socket]:
    """Yields the other process's sockets, duplicated into this process."""
    process = os.pidfd_open(pid)
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(entry).startswith("socket:"):
                yield socket.socket(fileno=_copy(process, int(entry.name)))
    finally:
        os.close(process)


def _copy(process: int, descriptor: int) -> int:
    copied: int = _libc.syscall(PIDFD_GETFD, process, descriptor, 0)
    if copied < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return copied
