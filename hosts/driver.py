"""Moves the datagrams of an endpoint over a UDP socket, many in each system call (native/io.c).

This module imports only other modules of `hosts`.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import library, segments, wire
from agglab.hosts.endpoint import Address, Endpoint, Inbox, OutboxColumns
from agglab.hosts.errors import AllReduceError

IN_FLIGHT_TIME_S, OF_IT_ROUND_TRIP_S = 0.010, 0.005
MIN_WINDOW = 16
FIRST_TIMEOUT_MIN_S, FIRST_TIMEOUT_MAX_S = 0.020, 0.100
MAX_BATCH = 128

# asm-generic/socket.h and linux/in.h; Python's socket module lacks them.
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_MEMINFO = 32, 33, 55
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
SK_MEMINFO_DROPS = 8


def default_window(
    frame_bytes: int, most: int, link_rate_bps: float | None = None, delays_s: float = 0.0
) -> int:
    """Returns the window for links of a known rate: the number of frames that a link carries in 10
    ms, but at least 16 and at most `most`. Returns `most` if the rate is not known.

    10 ms cover three times: the round trip, the time for which workers let results gather before
    they receive them, and the time for which a process waits for a processor on a shared machine.
    5 ms of them are for the round trip. If the links' delays alone make it longer, the window
    covers as much more. delays_s: the part of the longest round trip that these delays cause, in
    seconds. All workers of a job must use the same window, so `link_rate_bps` must be the rate of
    the slowest link.
    """
    if not link_rate_bps:
        return most
    in_flight_s = IN_FLIGHT_TIME_S + max(0.0, delays_s - OF_IT_ROUND_TRIP_S)
    frames = in_flight_s * link_rate_bps / (8 * frame_bytes)
    return min(most, max(MIN_WINDOW, round(frames)))


def first_timeout_s(
    window: int, lanes: int, link_rate_bps: float | None = None, delays_s: float = 0.0
) -> float:
    """Returns how long to wait for the first result while no round trip has been measured. This is
    20 times the time that a window of packets takes on the link, but at least 20 ms and at most 100
    ms. It is never less than twice `delays_s`, the part of the longest round trip that the links'
    delays alone cause, in seconds."""
    queues_s = FIRST_TIMEOUT_MAX_S
    if link_rate_bps:
        window_s = window * wire.frame_bytes(lanes) * 8 / link_rate_bps
        queues_s = min(FIRST_TIMEOUT_MAX_S, max(FIRST_TIMEOUT_MIN_S, 20 * window_s))
    return max(queues_s, 2 * delays_s)


class Link:
    """A UDP socket with the buffers for one endpoint's traffic. If the endpoint has only one peer,
    the socket is connected to this peer.

    The constructor raises AllReduceError if an address cannot be used, or if the interface's MTU is
    too small.
    """

    def __init__(self, endpoint: Endpoint, bind: Address) -> None:
        self._native = library.load()
        self.peers = tuple(endpoint.peers)
        self._endpoint = endpoint
        self._columns, self._outbox = endpoint.outbox, OutboxColumns.of(endpoint.outbox)
        rows = self._columns.answers * len(self._columns.frames)
        self.socket = _open_socket(bind, self.peers, rows, endpoint.longest_bytes)
        self.inbox = Inbox(min(max(rows, MIN_WINDOW), MAX_BATCH), endpoint.longest_bytes)
        self._segments = segments.most(self.socket.getsockname()[0])
        self._io: int | None = self._new_io()
        if not self._io:
            self.socket.close()
            raise MemoryError("no memory for packet buffers")
        self._kernel_drops = self._unsent = self._network_errors = self._unknown_senders = 0

    def _new_io(self) -> int | None:
        inbox = self.inbox
        many = self.peers if len(self.peers) > 1 else ()
        addresses = np.array([_network_order(ip) for ip, _ in many], np.uint32)
        ports = np.array([socket.htons(port) for _, port in many], np.uint16)
        made: int | None = self._native.io_new(
            self.socket.fileno(),
            inbox.buffer.ctypes.data,
            inbox.row_bytes,
            inbox.lengths.ctypes.data,
            inbox.peers.ctypes.data,
            inbox.capacity,
            addresses.ctypes.data,
            ports.ctypes.data,
            len(many),
            self._segments,
        )
        return made

    @property
    def buffer_packets(self) -> int:
        """The number of the endpoint's longest datagrams that the kernel may carry as one
        buffer."""
        fitting = segments.BYTES_MAX // self._endpoint.longest_bytes
        return max(1, min(self._segments, fitting))

    def send(self, rows: NDArray[np.uint32]) -> None:
        """Sends the datagrams in the given rows of the endpoint's outbox."""
        if self._endpoint.outbox is not self._columns:
            self._columns = self._endpoint.outbox
            self._outbox = OutboxColumns.of(self._columns)
        outbox = self._outbox.address
        error = self._native.io_send(self._io, outbox, rows.ctypes.data, len(rows))
        if error:
            raise self.cannot_send(-error)

    def receive(self, gather_ns: int, wait_ns: int) -> Inbox:
        """Waits for `gather_ns`, so that several datagrams can arrive, and returns those that came.
        If none came, waits for the first one for at most `wait_ns` more."""
        count = self._native.io_receive(self._io, gather_ns, wait_ns)
        if count < 0:
            raise self.cannot_receive(-count)
        self.inbox.count = count
        return self.inbox

    @property
    def address(self) -> int:
        """The address of the `struct io` (native/io.h) by which C code uses the socket. The link
        must not be closed."""
        assert self._io is not None
        return self._io

    def cannot_send(self, error: int) -> AllReduceError:
        """Returns the exception for the errno of a datagram that could not be sent."""
        return AllReduceError(f"cannot send to {self.names()}: {os.strerror(error)}")

    def cannot_receive(self, error: int) -> AllReduceError:
        """Returns the exception for the errno of a failed attempt to receive."""
        return AllReduceError(f"cannot receive: {os.strerror(error)}")

    def names(self) -> str:
        """Returns the addresses of the peers as a text for messages."""
        return " and ".join(f"{ip}:{port}" for ip, port in self.peers)

    @property
    def unknown_senders(self) -> int:
        """The number of datagrams that were discarded because they came from an address that is no
        peer of this endpoint. A connected socket never receives such datagrams."""
        if not self.closed:
            self._unknown_senders = self._native.io_unknown_senders(self._io)
        return self._unknown_senders

    @property
    def kernel_drops(self) -> int:
        """The number of datagrams that the kernel dropped because the socket's receive buffer was
        full."""
        if not self.closed:
            memory = self.socket.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 64)
            self._kernel_drops = struct.unpack_from("=9I", memory)[SK_MEMINFO_DROPS]
        return self._kernel_drops

    @property
    def unsent(self) -> int:
        """The number of datagrams that the kernel did not accept for sending. Loss recovery sends
        them again later."""
        if not self.closed:
            self._unsent = self._native.io_unsent(self._io)
        return self._unsent

    @property
    def network_errors(self) -> int:
        """The number of errors that the network reported, by ICMP messages or because an interface
        was down. Anyone can send ICMP messages, so the errors are counted and have no other
        effect."""
        if not self.closed:
            self._network_errors = self._native.io_network_errors(self._io)
        return self._network_errors

    @property
    def closed(self) -> bool:
        """Whether `close` was called. The counts can still be read afterwards."""
        return self._io is None

    @property
    def last_error(self) -> str | None:
        """The text of the most recent error that the network reported, or None."""
        code = self._native.io_last_error(self._io)
        return os.strerror(code) if code else None

    def close(self) -> None:
        """Releases the socket and the buffers. May be called twice."""
        if self.closed:
            return
        self._kernel_drops, self._unsent = self.kernel_drops, self.unsent
        self._network_errors, self._unknown_senders = self.network_errors, self.unknown_senders
        self._native.io_free(self._io)
        self._io = None
        self.socket.close()


def _open_socket(
    bind: Address, peers: Sequence[Address], rows: int, longest_bytes: int
) -> socket.socket:
    sock = _datagram_socket()
    try:
        sock.setblocking(False)
        # The kernel charges a packet's whole allocation, up to twice its length, and all that is
        # in flight may be there twice.
        room = max(1 << 20, 2 * rows * (2 * (longest_bytes + wire.LOWER_HEADER_BYTES) + 2048))
        _set_buffer(sock, SO_RCVBUFFORCE, socket.SO_RCVBUF, room)
        _set_buffer(sock, SO_SNDBUFFORCE, socket.SO_SNDBUF, room)
        sock.bind(bind)
        if len(peers) == 1:
            sock.connect(peers[0])
        for peer in peers:
            _check_fits(bind, peer, longest_bytes)
    except AllReduceError:
        sock.close()
        raise
    except (OSError, OverflowError) as error:
        sock.close()
        reached = " and ".join(f"{ip}:{port}" for ip, port in peers)
        raise AllReduceError(
            f"cannot use {bind[0]}:{bind[1]} to reach {reached}: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from error
    return sock


def _network_order(ip: str) -> int:
    return int.from_bytes(socket.inet_aton(ip), sys.byteorder)


def _datagram_socket() -> socket.socket:
    """Returns a UDP socket that never fragments datagrams. Only the interface's MTU limits their
    length. ICMP messages cannot lower this limit, because anyone can send them."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
    return sock


def _check_fits(bind: Address, peer: Address, longest_bytes: int) -> None:
    """Raises AllReduceError if the interface's MTU is too small for a datagram of `longest_bytes`.

    The function passes the kernel the datagram as an unfinished one (MSG_MORE). The kernel compares
    its length with the MTU at once. The socket is closed before the datagram is finished, so
    nothing is sent.
    """
    with _datagram_socket() as probe:
        probe.bind((bind[0], 0))
        probe.connect(peer)
        try:
            probe.send(bytes(longest_bytes), socket.MSG_MORE)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                return  # of a state that may pass; what the network says is counted later
            raise AllReduceError(
                f"datagrams of {longest_bytes} bytes ({longest_bytes + 28} of IPv4) exceed "
                f"the MTU of {bind[0]}'s interface: use fewer lanes or raise the MTU"
            ) from error


def _set_buffer(sock: socket.socket, forced: int, limited: int, size: int) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, forced, size)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, limited, size)
