"""Moves a worker's datagrams over a UDP socket, many per system call (native/io.c).

Lets results gather, so that a call has many to move. Imports the other modules of `hosts` only.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Callable

from agglab.hosts import library, wire
from agglab.hosts.errors import AllReduceError, RoundTimeout
from agglab.hosts.worker import Worker

Address = tuple[str, int]

GATHER_MAX_NS = 1_000_000
"""Results wait at most so long for others; see docs/hosts.md for what it buys."""
PROGRESS_INTERVAL_NS = 200_000_000
IN_FLIGHT_TIME_S = 0.010
MIN_WINDOW = 16
FIRST_TIMEOUT_MIN_S, FIRST_TIMEOUT_MAX_S = 0.020, 0.100
MAX_BATCH = 128

# asm-generic/socket.h and linux/in.h; Python's socket module lacks them.
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_MEMINFO = 32, 33, 55
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
SK_MEMINFO_DROPS = 8


def default_window(slots: int, lanes: int, link_rate_bps: float | None = None) -> int:
    """The window for links of a known rate: 10 ms of frames, at least 16, at most all slots.

    10 ms cover the round trip, the gathering of results at every worker and the turns that
    processes take on a shared machine. All workers of a job must use the same window, hence the
    slowest link's rate.
    """
    if not link_rate_bps:
        return slots
    frames = IN_FLIGHT_TIME_S * link_rate_bps / (8 * wire.frame_bytes(lanes))
    return min(slots, max(MIN_WINDOW, round(frames)))


def first_timeout_s(window: int, lanes: int, link_rate_bps: float | None = None) -> float:
    """How long to wait for a first result while no round trip has been measured: 20 times what a
    window takes on the link, within 20 to 100 ms."""
    if not link_rate_bps:
        return FIRST_TIMEOUT_MAX_S
    window_s = window * wire.frame_bytes(lanes) * 8 / link_rate_bps
    return min(FIRST_TIMEOUT_MAX_S, max(FIRST_TIMEOUT_MIN_S, 20 * window_s))


class Link:
    """A connected UDP socket with the buffers for one worker's traffic.

    Raises AllReduceError if the address cannot be used, or the interface's MTU is too small.
    """

    def __init__(self, worker: Worker, bind: Address, aggregator: Address) -> None:
        self._native, self._worker = library.load(), worker
        lanes, window = worker.job.lanes, worker.job.window
        self.aggregator = aggregator
        self.socket = _open_socket(bind, aggregator, window, lanes)
        self.batch = wire.Batch(min(max(window, MIN_WINDOW), MAX_BATCH), lanes)
        self._io: int | None = self._native.io_new(
            self.socket.fileno(),
            self.batch.rows_address,
            self.batch.row_bytes,
            self.batch.lengths_address,
            self.batch.capacity,
        )
        if not self._io:
            self.socket.close()
            raise MemoryError("no memory for packet buffers")
        self._kernel_drops = self._unsent = self._network_errors = 0

    def send(self, count: int) -> None:
        """Send the datagrams of the first `count` slots of the worker's queue."""
        error = self._native.io_send(
            self._io, self._worker.address, self._worker.queue_address, count
        )
        if error:
            where = f"{self.aggregator[0]}:{self.aggregator[1]}"
            raise AllReduceError(f"cannot send to {where}: {os.strerror(-error)}")

    def receive(self, gather_ns: int, wait_ns: int) -> wire.Batch:
        """Let results gather for `gather_ns`; with none then, wait `wait_ns` more for the first."""
        count = self._native.io_receive(self._io, gather_ns, wait_ns)
        if count < 0:
            raise AllReduceError(f"cannot receive: {os.strerror(-count)}")
        self.batch.count = count
        return self.batch

    @property
    def kernel_drops(self) -> int:
        """Datagrams the kernel dropped because the socket's receive buffer was full."""
        if not self.closed:
            memory = self.socket.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 64)
            self._kernel_drops = struct.unpack_from("=9I", memory)[SK_MEMINFO_DROPS]
        return self._kernel_drops

    @property
    def unsent(self) -> int:
        """Datagrams the kernel did not take; the worker's timers sent them again."""
        if not self.closed:
            self._unsent = self._native.io_unsent(self._io)
        return self._unsent

    @property
    def network_errors(self) -> int:
        """Errors that the network reported, by ICMP messages or an interface that is down. Anyone
        can send such messages, so they are counted and change nothing."""
        if not self.closed:
            self._network_errors = self._native.io_network_errors(self._io)
        return self._network_errors

    @property
    def closed(self) -> bool:
        """`close` was called; the counts stay."""
        return self._io is None

    @property
    def last_error(self) -> str | None:
        """The last of the network's errors, or None."""
        code = self._native.io_last_error(self._io)
        return os.strerror(code) if code else None

    def close(self) -> None:
        """Release socket and buffers. May be called twice."""
        if self.closed:
            return
        self._kernel_drops, self._unsent = self.kernel_drops, self.unsent
        self._network_errors = self.network_errors
        self._native.io_free(self._io)
        self._io = None
        self.socket.close()


def _open_socket(bind: Address, aggregator: Address, window: int, lanes: int) -> socket.socket:
    sock = _datagram_socket()
    try:
        sock.setblocking(False)
        # The kernel charges a packet's whole allocation, up to twice its length, and a window may
        # be there twice.
        room = max(1 << 20, 2 * window * (2 * wire.frame_bytes(lanes) + 2048))
        _set_buffer(sock, SO_RCVBUFFORCE, socket.SO_RCVBUF, room)
        _set_buffer(sock, SO_SNDBUFFORCE, socket.SO_SNDBUF, room)
        sock.bind(bind)
        sock.connect(aggregator)
        _check_fits(bind, aggregator, lanes)
    except AllReduceError:
        sock.close()
        raise
    except (OSError, OverflowError) as error:
        sock.close()
        raise AllReduceError(
            f"cannot use {bind[0]}:{bind[1]} to reach {aggregator[0]}:{aggregator[1]}: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from error
    return sock


def _datagram_socket() -> socket.socket:
    """Datagrams are never cut into fragments, and how long they may be is what the interface says:
    not an ICMP message, which anyone can send."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
    return sock


def _check_fits(bind: Address, aggregator: Address, lanes: int) -> None:
    """The kernel measures a datagram against the interface's MTU when it is given the first part of
    it; a socket that is closed before the last part (MSG_MORE) has sent nothing."""
    with _datagram_socket() as probe:
        probe.bind((bind[0], 0))
        probe.connect(aggregator)
        try:
            probe.send(bytes(wire.datagram_bytes(lanes)), socket.MSG_MORE)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                return  # of a state that may pass; what the network says is counted later
            raise AllReduceError(
                f"packets of {lanes} lanes ({wire.frame_bytes(lanes) - 14} bytes of IPv4) exceed "
                f"the MTU of {bind[0]}'s interface: use fewer lanes or raise the MTU"
            ) from error


def _set_buffer(sock: socket.socket, forced: int, limited: int, size: int) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, forced, size)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, limited, size)


class Gathering:
    """How long to let results gather before the next receive call.

    It is the time in which a quarter of the packets in flight come back, at the pace of late:
    waiting never empties the window.
    """

    def __init__(self) -> None:
        self._gap_ns = 0.0
        self._last_ns = 0

    def saw(self, now_ns: int, count: int) -> None:
        """`count` results came at `now_ns`."""
        if count:
            gap_ns = min((now_ns - self._last_ns) / count, GATHER_MAX_NS)
            self._gap_ns += (gap_ns - self._gap_ns) / 8
            self._last_ns = now_ns

    def wait_ns(self, in_flight: int) -> int:
        """The time to let results gather now."""
        return min(GATHER_MAX_NS, int(self._gap_ns * (in_flight // 4)))


def run_round(
    worker: Worker,
    link: Link,
    gathering: Gathering,
    on_progress: Callable[[int], None] | None = None,
    on_batch: Callable[[], None] | None = None,
) -> None:
    """Drive a round that has begun to its end. `on_progress(now_ns)` is called five times a second,
    first after 0.1 s, `on_batch()` whenever packets were waited for.

    Raises AllReduceError; then the job's slots are out of step and the worker is of no further use.
    """
    received = worker.counters["received"]
    now_ns = time.monotonic_ns()
    # Half an interval early: who looks at the end of an interval finds a report of every worker.
    report_ns = now_ns + PROGRESS_INTERVAL_NS // 2
    try:
        while not worker.done:
            queue = worker.poll(now_ns)
            link.send(len(queue))
            wait_ns = max(0, min(worker.deadline_ns, report_ns) - time.monotonic_ns())
            batch = link.receive(min(wait_ns, gathering.wait_ns(worker.in_flight)), wait_ns)
            now_ns = time.monotonic_ns()
            gathering.saw(now_ns, worker.on_results(now_ns, batch))
            if on_batch:
                on_batch()
            if now_ns >= report_ns:
                report_ns = now_ns + PROGRESS_INTERVAL_NS
                if on_progress:
                    on_progress(now_ns)
    except RoundTimeout as error:
        message = str(error) + _circumstances(worker, link, received)
        raise RoundTimeout(message, error.missing) from None


def _circumstances(worker: Worker, link: Link, received_before: int) -> str:
    """What else is known about a silence."""
    known = ""
    if worker.counters["received"] == received_before:
        known = f"; no packet at all came from {link.aggregator[0]}:{link.aggregator[1]}"
    if link.last_error:
        known += f"; the network's last error was: {link.last_error}"
    return known
