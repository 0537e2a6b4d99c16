"""Datagrams that cross the kernel many at a time, over loopback: to a plain socket, and from one to
a Link, they are the datagrams they were."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from agglab.hosts import segments
from agglab.hosts.driver import Link
from agglab.hosts.endpoint import Outbox

ROW_BYTES = 1200
UDP_SEGMENT = 103
WAIT_NS = 5_000_000_000


def plain() -> socket.socket:
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    own.bind(("127.0.0.1", 0))
    own.settimeout(5)
    return own


@pytest.fixture
def peers() -> Iterator[list[socket.socket]]:
    sockets = [plain() for _ in range(2)]
    yield sockets
    for each in sockets:
        each.close()


def link(
    peers: Sequence[socket.socket], lengths: Sequence[int], to: Sequence[int], answers: int = 1
) -> Link:
    frames = np.zeros((len(lengths), ROW_BYTES), np.uint8)
    for row, length in enumerate(lengths):
        frames[row, :length] = np.frombuffer(random.Random(row).randbytes(length), np.uint8)
    outbox = Outbox(frames, np.array(lengths, np.uint32), np.array(to, np.uint32), answers)
    addresses = [own.getsockname() for own in peers]
    endpoint = SimpleNamespace(peers=addresses, outbox=outbox, longest_bytes=ROW_BYTES)
    return Link(endpoint, ("127.0.0.1", 0))  # type: ignore[arg-type]


def lengths_of(count: int) -> list[int]:
    """Runs of equal lengths, some longer than a buffer holds, with others in between."""
    chance = random.Random(count)
    found: list[int] = []
    while len(found) < count:
        found += [chance.choice([1, 90, 1064, ROW_BYTES])] * chance.choice([1, 2, 5, 70, 130])
    return found[:count]


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 300, 700])
def test_each_peer_gets_its_datagrams_in_order(peers: list[socket.socket], count: int) -> None:
    lengths = lengths_of(count)
    to = [random.Random(row // 9).randrange(2) for row in range(count)]
    own = link(peers, lengths, to)
    try:
        rows = np.arange(count, dtype=np.uint32)
        own.send(rows)
        outbox = own._columns
        for number, peer in enumerate(peers):
            expected = [outbox.datagram(row) for row in rows if to[row] == number]
            assert [peer.recv(65536) for _ in expected] == expected
        assert own.unsent == 0
    finally:
        own.close()


@pytest.mark.parametrize("size", [1, 500, ROW_BYTES])
def test_buffers_are_received_as_their_datagrams(peers: list[socket.socket], size: int) -> None:
    """More than the inbox has room for at once; an outsider's are none of them."""
    own = link(peers, [ROW_BYTES] * 40, [0] * 40)
    outsider = plain()
    try:
        address = own.socket.getsockname()
        sent: list[tuple[int, bytes]] = []
        for run in range(9):
            payloads = [bytes([run]) * size for _ in range(30)] + [b"last"[:size]]
            said = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", size))]
            outsider.sendmsg([b"".join(payloads)], said, 0, address)
            peers[run % 2].sendmsg([b"".join(payloads)], said, 0, address)
            sent += [(run % 2, payload) for payload in payloads]
        assert received(own, len(sent)) == sent
        assert own.unknown_senders == len(sent)
    finally:
        outsider.close()
        own.close()


def received(own: Link, count: int) -> list[tuple[int, bytes]]:
    """(peer, payload) of each datagram, in order."""
    found: list[tuple[int, bytes]] = []
    while len(found) < count:
        inbox = own.receive(0, WAIT_NS)
        assert 0 < inbox.count <= inbox.capacity, "nothing came"
        for row in range(inbox.count):
            length = inbox.lengths[row]
            found.append((int(inbox.peers[row]), inbox.buffer[row, :length].tobytes()))
    return found


def test_a_datagram_that_is_too_long_is_seen_to_be(peers: list[socket.socket]) -> None:
    own = link(peers, [ROW_BYTES] * 40, [0] * 40)
    try:
        peers[1].sendto(bytes(9000), own.socket.getsockname())
        peers[1].sendto(b"next", own.socket.getsockname())
        ((peer, first), second) = received(own, 2)
        assert peer == 1 and len(first) > ROW_BYTES and second == (1, b"next")
    finally:
        own.close()


def test_an_address_of_no_interface_sends_single_datagrams() -> None:
    assert segments.most("127.0.0.1") == segments.MOST
    assert segments.most("192.0.2.1") == 1


def test_all_answers_that_may_wait_are_received_at_once(peers: list[socket.socket]) -> None:
    """A worker that is slow would otherwise take one window each time, however many wait."""
    receiver = link(peers[:1], [90] * 16, [0] * 16, answers=4)
    for number in range(64):
        peers[0].sendto(number.to_bytes(90, "big"), receiver.socket.getsockname())
    inbox = receiver.receive(0, WAIT_NS)
    assert [int.from_bytes(row[:90].tobytes(), "big") for row in inbox.buffer[:64]] == [*range(64)]
    assert inbox.count == 64
    receiver.close()
