"""Tracks which ports are up. Members of a group that watch a port depend on it."""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import struct
import threading
from collections.abc import Callable, Collection, Mapping

# linux/if.h, linux/sockios.h, linux/rtnetlink.h
SIOCGIFFLAGS = 0x8913
IFF_UP, IFF_RUNNING = 0x1, 0x40
RTMGRP_LINK = 1
IFREQ = struct.Struct("=16sH22x")
NOTICE_BYTES = 1 << 16


class Links:
    """The state of the switch's ports. The kernel reports each change.

    interfaces: P4 port -> interface. always: ports that have no link, such as the CPU port.
    """

    def __init__(self, interfaces: Mapping[int, str], always: Collection[int] = ()) -> None:
        self._interfaces = dict(interfaces)
        self._always = frozenset(always)
        # What is written to the one ends the thread that waits at the other.
        self._ending, self._ended = socket.socketpair()
        self._up = self._look()

    def __contains__(self, port: int) -> bool:
        return port in self._interfaces or port in self._always

    def up(self, port: int) -> bool:
        """Whether the port is up, so that a frame sent to the port can reach a neighbor."""
        return port in self._up

    def _look(self) -> frozenset[int]:
        running = (port for port, name in self._interfaces.items() if is_running(name))
        return self._always.union(running)

    def watch(self, changed: Callable[[], None]) -> None:
        """Calls `changed` after each change of a port's state until `close`. The calls come from a
        separate thread."""
        try:
            notices = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            notices.bind((0, RTMGRP_LINK))
        except OSError:
            # A sandbox without netlink: ports stay as they were at the start.
            return
        threading.Thread(target=self._follow, args=(notices, changed), daemon=True).start()

    def _follow(self, notices: socket.socket, changed: Callable[[], None]) -> None:
        with notices, self._ended:
            while True:
                # First of all: what came before the socket was bound has no notice.
                now = self._look()
                if now != self._up:
                    self._up = now
                    changed()
                ready, _, _ = select.select([notices, self._ended], [], [])
                if self._ended in ready:
                    return
                # Lost notices (ENOBUFS) matter as little as what they say: all ports are looked at.
                with contextlib.suppress(OSError):
                    notices.recv(NOTICE_BYTES)

    def close(self) -> None:
        """Stops watching."""
        self._ending.close()


def is_running(interface: str) -> bool:
    """Whether the interface exists, is up and has a carrier."""
    request = IFREQ.pack(interface.encode(), 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, SIOCGIFFLAGS, request)
        except OSError:
            return False
    flags: int = IFREQ.unpack(answer)[1]
    return flags & (IFF_UP | IFF_RUNNING) == IFF_UP | IFF_RUNNING
