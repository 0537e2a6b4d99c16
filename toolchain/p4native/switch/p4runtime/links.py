"""Tracks which ports are up. Members of a group that watch a port depend on it."""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import struct
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

# linux/if.h, linux/sockios.h, linux/rtnetlink.h
SIOCGIFFLAGS = 0x8913
IFF_UP, IFF_RUNNING = 0x1, 0x40
RTMGRP_LINK = 1
IFREQ = struct.Struct("=16sH22x")
NOTICE_BYTES = 1 << 16


@dataclass(frozen=True)
class Link:
    """The state of an interface. index: the kernel's number of it, 0 if it does not exist. running:
    whether it is up and has a carrier."""

    index: int
    running: bool


Changed = Callable[[int, Link, Link], None]
"""A function that takes a port and its interface's state before and after a change."""


def ignore(port: int, before: Link, now: Link) -> None:
    pass


class Links:
    """The state of the switch's ports. The kernel reports each change.

    interfaces: P4 port -> interface. always: ports that have no link, such as the CPU port.
    port_changed: is called for each change of an interface, after `watch`.
    """

    def __init__(
        self,
        interfaces: Mapping[int, str],
        always: Collection[int] = (),
        port_changed: Changed = ignore,
    ) -> None:
        self._interfaces = dict(interfaces)
        self._always = frozenset(always)
        self._port_changed = port_changed
        # What is written to the one ends the thread that waits at the other.
        self._ending, self._ended = socket.socketpair()
        self._links = self._look()

    def __contains__(self, port: int) -> bool:
        return port in self._interfaces or port in self._always

    def up(self, port: int) -> bool:
        """Whether the port is up, so that a frame sent to the port can reach a neighbor."""
        return port in self._always or (port in self._links and self._links[port].running)

    def _look(self) -> dict[int, Link]:
        return {port: link(name) for port, name in self._interfaces.items()}

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
                before, self._links = self._links, self._look()
                for port, now in self._links.items():
                    if now != before[port]:
                        self._port_changed(port, before[port], now)
                if self._links != before:
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


def link(interface: str) -> Link:
    """Returns the present state of an interface."""
    try:
        index = socket.if_nametoindex(interface)
    except OSError:
        index = 0
    return Link(index, is_running(interface))


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
