"""Reads the kernel's information about TCP connections that other code of this process has made. It
finds the sockets by the addresses of their peers, and reads TCP_INFO of each (linux/tcp.h, `struct
tcp_info`)."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields

TCP_INFO = 11
ESTABLISHED = 1
TCP_CONGESTION = 13
PROBING = {socket.TCP_KEEPIDLE: 1, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: 127}
"""Options for keep-alive probes. They are the time before the first probe in seconds, the time
between probes in seconds, and the number of unanswered probes after which the kernel gives up. The
number is the largest that the kernel accepts."""
OPEN_FILES = "/proc/self/fd"
INFO_BYTES = 512
"""A size that is larger than `struct tcp_info` of any kernel. getsockopt tells how many bytes it
has filled."""


@dataclass(frozen=True)
class Info:
    """Some fields of `struct tcp_info`, under their names without `tcpi_`. A field that the kernel
    does not have is 0.

    The following fields describe the present state: state; retransmits (how often in succession a
    segment was sent again without an answer); probes (the same for keep-alive probes); unacked and
    snd_cwnd, in segments. All other fields count segments, bytes or events since the connection was
    made.
    """

    state: int
    retransmits: int
    probes: int
    unacked: int
    snd_cwnd: int
    total_retrans: int
    bytes_acked: int
    bytes_received: int
    segs_out: int
    segs_in: int
    bytes_sent: int
    dsack_dups: int
    total_rto: int

    @property
    def established(self) -> bool:
        """Whether the connection is established, so that neither end has closed it."""
        return self.state == ESTABLISHED

    @property
    def silent(self) -> bool:
        """Whether the other end has not answered the segments or probes that were sent last."""
        return self.retransmits + self.probes > 0


PLACES: Mapping[str, tuple[str, int]] = {
    "state": ("B", 0),
    "retransmits": ("B", 2),
    "probes": ("B", 3),
    "unacked": ("I", 24),
    "snd_cwnd": ("I", 80),
    "total_retrans": ("I", 100),
    "bytes_acked": ("Q", 120),
    "bytes_received": ("Q", 128),
    "segs_out": ("I", 136),
    "segs_in": ("I", 140),
    "bytes_sent": ("Q", 200),
    "dsack_dups": ("I", 216),
    "total_rto": ("H", 240),
}
"""The format (for `struct`) and the offset in bytes of each field of the structure. New kernels add
fields only at its end."""
assert set(PLACES) == {field.name for field in fields(Info)}


def read_info(filled: bytes) -> Info:
    """Returns the fields that the kernel has filled in; the others are 0."""
    values = {}
    for name, (kind, offset) in PLACES.items():
        there = len(filled) >= offset + struct.calcsize(kind)
        values[name] = struct.unpack_from(f"={kind}", filled, offset)[0] if there else 0
    return Info(**values)


class Connection:
    """A duplicate of a connected socket. Its information can still be read after the owner of the
    socket has closed the socket. The duplicate keeps the connection open until `break_off`. peer:
    address and port of the other end."""

    def __init__(self, duplicate: socket.socket) -> None:
        self._socket = duplicate
        self.peer: tuple[str, int] = duplicate.getpeername()
        self._last = self._ask()

    def info(self) -> Info:
        """Returns the connection's current information. After `break_off`, returns the information
        that was read last."""
        if self._socket.fileno() >= 0:
            self._last = self._ask()
        return self._last

    def _ask(self) -> Info:
        return read_info(self._socket.getsockopt(socket.IPPROTO_TCP, TCP_INFO, INFO_BYTES))

    def control_congestion_by(self, algorithm: str) -> None:
        """Selects the algorithm of congestion control by its name in the kernel. Raises OSError if
        the kernel does not have this algorithm."""
        self._socket.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, algorithm.encode())

    def probe(self) -> None:
        """Turns keep-alive on: the kernel sends a probe each second while nothing else is being
        sent. The settings keep the kernel from closing the connection because of unanswered
        probes."""
        with contextlib.suppress(OSError):
            for option, value in PROBING.items():
                self._socket.setsockopt(socket.IPPROTO_TCP, option, value)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def break_off(self) -> None:
        """Ends the connection for all owners of the socket and for the other end. May be called
        twice."""
        if self._socket.fileno() < 0:
            return
        with contextlib.suppress(OSError):
            self._last = self._ask()
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def connections(addresses: Collection[str], but_port: int) -> Iterator[Connection]:
    """Yields this process's TCP connections to the given IPv4 addresses, except connections that
    have the port `but_port` at either end."""
    descriptors = [int(entry) for entry in os.listdir(OPEN_FILES)]
    # All before any is duplicated: a duplicate may get a number that was listed.
    for duplicate in [found for each in descriptors if (found := _tcp_socket(each))]:
        ends = _ends(duplicate)
        if ends and ends[1][0] in addresses and but_port not in (ends[0][1], ends[1][1]):
            yield Connection(duplicate)
        else:
            duplicate.close()


def _tcp_socket(descriptor: int) -> socket.socket | None:
    """Returns a duplicate of a descriptor if it is an IPv4 stream socket, and None otherwise."""
    try:
        if not os.readlink(f"{OPEN_FILES}/{descriptor}").startswith("socket:"):
            return None
        duplicate = socket.socket(fileno=os.dup(descriptor))
    except OSError:  # closed meanwhile
        return None
    if (duplicate.family, duplicate.type) == (socket.AF_INET, socket.SOCK_STREAM):
        return duplicate
    duplicate.close()
    return None


def _ends(connected: socket.socket) -> tuple[tuple[str, int], tuple[str, int]] | None:
    """Returns the own and the peer's address and port, or None for a socket that is not
    connected."""
    try:
        return connected.getsockname(), connected.getpeername()
    except OSError:
        return None
