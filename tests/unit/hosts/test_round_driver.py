"""Rounds over a socket: when hooks are called, and what an endpoint in C is given of the buffers
that arrive."""

from __future__ import annotations

import ctypes
import itertools
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from agglab.hosts import round_driver
from agglab.hosts.driver import Link
from agglab.hosts.endpoint import NEVER_NS, Outbox, OutboxColumns, Rows
from agglab.hosts.errors import AllReduceError
from agglab.hosts.native_endpoint import NativeEndpoint, address_of
from agglab.hosts.native_structures import Head
from agglab.hosts.part import Hooks
from agglab.hosts.recovery import Recovery
from agglab.hosts.round_driver import PROGRESS_INTERVAL_NS, RoundDriver

UDP_SEGMENT = 103
LONGEST = 1200


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0


class Worker:
    """Has nothing to send and hears nothing for four intervals."""

    deadline_ns = 1 << 62
    in_flight = 1

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.counters = {"received": 0}

    @property
    def done(self) -> bool:
        return self._clock.now_ns >= 4 * PROGRESS_INTERVAL_NS

    def poll(self, _: int) -> list[int]:
        return []

    def on_datagrams(self, _: int, __: object) -> int:
        return 0


class SilentLink:
    buffer_packets = 1

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def send(self, _: int) -> None: ...

    def receive(self, _: int, wait_ns: int) -> None:
        self._clock.now_ns += wait_ns


def test_whoever_looks_after_an_interval_has_a_report_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The screen is drawn as often, and would show 0 of a worker whose report comes just later."""
    clock = Clock()
    monkeypatch.setattr(round_driver.time, "monotonic_ns", lambda: clock.now_ns)
    reports: list[int] = []
    link: Any = SilentLink(clock)
    endpoint: Any = Worker(clock)
    RoundDriver(endpoint, link, Hooks(reports.append)).run()
    assert [at / PROGRESS_INTERVAL_NS for at in reports[:4]] == [0.5, 1.5, 2.5, 3.5]


TAKE = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(Rows))
POLL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)


class InC(NativeEndpoint):
    """An endpoint as C code sees it: sends nothing and waits for a number of datagrams."""

    longest_bytes = LONGEST

    def __init__(self, peers: Sequence[socket.socket], expected: int) -> None:
        self.peers = tuple(own.getsockname() for own in peers)
        self.head = Head()
        self.outbox = Outbox(
            np.zeros((40, LONGEST), np.uint8), np.zeros(40, np.uint32), np.zeros(40, np.uint32)
        )
        self.taken: list[tuple[int, bytes]] = []
        self.addresses: list[int] = []
        self.batches = 0
        self.error = 0
        self._recovery = Recovery()
        self.recoveries = [self._recovery]
        self.set_waiting(expected)
        self._queue = np.zeros(1, np.uint32)
        self._functions = [TAKE(self._on_rows), POLL(self._on_poll)]
        self.head.outbox, self.head.queue = OutboxColumns.of(self.outbox), self._queue
        self.head.recoveries, self.head.recovery_count = self._recovery.address, 1
        self.head.deadline_ns = NEVER_NS
        self.set_functions(*self._functions)

    def set_functions(self, take: Any, poll: Any) -> None:
        self._functions = [take, poll]
        self.head.take, self.head.poll = map(address_of, self._functions)

    def set_waiting(self, count: int) -> None:
        self._recovery.in_flight, self.head.done = count, not count

    def _on_rows(self, _: object, now_ns: int, given: Any) -> int:
        rows = given.contents
        lengths, peers = (
            ctypes.cast(column, ctypes.POINTER(ctypes.c_uint32))
            for column in (rows.lengths, rows.peers)
        )
        for row in range(rows.count):
            self.addresses.append(rows.first + row * rows.row_bytes)
            payload = ctypes.string_at(self.addresses[-1], lengths[row])
            self.taken.append((peers[row], payload))
        self.set_waiting(max(0, self._recovery.in_flight - rows.count))
        self.batches += 1
        return int(rows.count)

    def _on_poll(self, _: object, now_ns: int) -> int:
        return -self.error

    @property
    def counters(self) -> dict[str, int]:
        return {"received": 0}

    def failure(self, error: int) -> AllReduceError:
        return AllReduceError(f"error {error}")


@pytest.fixture
def peers() -> Iterator[list[socket.socket]]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for own in sockets:
        own.bind(("127.0.0.1", 0))
    yield sockets
    for own in sockets:
        own.close()


def send_run(own: socket.socket, to: Any, payloads: Sequence[bytes]) -> None:
    """As one buffer."""
    said = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", len(payloads[0])))]
    own.sendmsg([b"".join(payloads)], said, 0, to)


def run_of(size: int, count: int, last: int) -> list[bytes]:
    lengths = [size] * (count - 1) + [last]
    return [bytes([k + 1]) * length for k, length in enumerate(lengths)]


@pytest.mark.parametrize("size", [1, 7, 500, 1022, LONGEST])
@pytest.mark.parametrize("singly", [False, True], ids=["buffers", "single"])
def test_an_endpoint_in_c_is_given_each_datagram_in_order(
    peers: list[socket.socket], size: int, singly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than the inbox has room for; numbers of four bytes can be read in place in each."""
    if singly:
        monkeypatch.setattr("agglab.hosts.segments.most", lambda _: 1)
    runs = [run_of(size, 50, last) for last in (1, size)] + [run_of(size, 1, size)]
    expected = [payload for run in runs for payload in run]
    endpoint: Any = InC(peers[:1], len(expected))
    link = Link(endpoint, ("127.0.0.1", 0))
    try:
        for run in runs:
            if singly:
                for payload in run:
                    peers[0].sendto(payload, link.socket.getsockname())
            else:
                send_run(peers[0], link.socket.getsockname(), run)
        RoundDriver(endpoint, link).run()
        assert endpoint.taken == [(0, payload) for payload in expected]
        assert not any(address % 4 for address in endpoint.addresses)
    finally:
        link.close()


@pytest.mark.parametrize("singly", [False, True], ids=["buffers", "single"])
def test_an_outsider_is_not_heard(
    peers: list[socket.socket], singly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one of several peers mistaken for another, whose index the endpoint in C is given."""
    if singly:
        monkeypatch.setattr("agglab.hosts.segments.most", lambda _: 1)
    endpoint: Any = InC(peers, 30)
    link = Link(endpoint, ("127.0.0.1", 0))
    outsider = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        outsider.bind(("127.0.0.1", 0))
        to = link.socket.getsockname()
        runs = [run_of(LONGEST, 10, 5) for _ in range(3)]
        senders = (peers[0], outsider, peers[1], peers[0])
        for own, run in zip(senders, (runs[0], *runs), strict=True):
            send_run(own, to, run)
        RoundDriver(endpoint, link).run()
        assert endpoint.taken == [
            (index, payload) for index, run in zip((0, 1, 0), runs, strict=True) for payload in run
        ]
        assert link.unknown_senders == 10
    finally:
        outsider.close()
        link.close()


@pytest.mark.parametrize(("answer", "calls"), [(None, 8), (0, 8), (NEVER_NS, 2)])
def test_the_hook_of_batches_says_when_it_is_needed_again(
    peers: list[socket.socket], answer: int | None, calls: int
) -> None:
    """Each poll has one datagram sent, so that batches have one datagram each."""
    endpoint: Any = InC(peers[:1], 8)
    link = Link(endpoint, ("127.0.0.1", 0))
    to = link.socket.getsockname()
    poll = POLL(lambda *_: len(b"next") - peers[0].sendto(b"next", to))
    endpoint.set_functions(endpoint._functions[0], poll)
    called = []

    def on_batch() -> int | None:
        called.append(len(endpoint.taken))
        return answer

    try:
        RoundDriver(endpoint, link, Hooks(on_batch=on_batch)).run()
    finally:
        link.close()
    assert endpoint.taken == [(0, b"next")] * 8
    assert len(called) == calls


def test_an_endless_stream_of_packets_delays_no_progress(peers: list[socket.socket]) -> None:
    """With each batch that is taken, another packet is there, many times more than come within the
    interval of reports. A report may find that the round was aborted, and a signal is handled only
    when Python runs."""
    endpoint: Any = InC(peers[:1], 1)
    link = Link(endpoint, ("127.0.0.1", 0))
    to = link.socket.getsockname()
    packets = itertools.count()

    def take(*_: object) -> int:
        endpoint.set_waiting(int(next(packets) < 1_000_000))
        return peers[0].sendto(b"more", to)

    def on_progress(_: int) -> None:
        if not endpoint.done:
            raise AllReduceError("aborted")

    endpoint.set_functions(TAKE(take), endpoint._functions[1])
    peers[0].sendto(b"more", to)
    try:
        with pytest.raises(AllReduceError, match="aborted"):
            RoundDriver(endpoint, link, Hooks(on_progress, lambda: NEVER_NS)).run()
    finally:
        link.close()


def test_errors_of_an_endpoint_in_c_are_its_own(peers: list[socket.socket]) -> None:
    endpoint: Any = InC(peers[:1], 1)
    endpoint.error = 71
    link = Link(endpoint, ("127.0.0.1", 0))
    try:
        with pytest.raises(AllReduceError, match="error 71"):
            RoundDriver(endpoint, link).run()
    finally:
        link.close()
