"""The interface that drives an agent's part in a round, for every system: the contract between
systems, which are state machines, and drivers, which have sockets or a virtual clock.

    endpoint.begin(now_ns, values, out, sums)
    while not endpoint.done:
        for row in endpoint.poll(now_ns):
            send outbox.datagram(row) to endpoint.peers[outbox.peer(row)]
        wait for datagrams until endpoint.deadline_ns
        endpoint.on_datagrams(now_ns, batch)
    endpoint.finish()

Times are integers, nanoseconds of any monotonic clock. An endpoint knows neither sockets nor
clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Address = tuple[str, int]
"""An IPv4 address and a UDP port."""


class Repeat(NamedTuple):
    """A packet that is sent again. place, number: what in the protocol, comparable over all agents
    of a job, where switches aggregate (a slot and a tag); place is None where only its peer can
    have failed to answer. first_sent_ns: when it was sent first. gathered: the peer answers when it
    has heard all agents of the job."""

    place: int | None
    number: int
    first_sent_ns: int
    gathered: bool = False


class Outbox(NamedTuple):
    """Datagrams that may have to be sent, one a row. frames: uint8 of shape (rows, row bytes);
    lengths: uint32 of shape (rows,), may be a strided view; peers: uint32 of shape (rows,), the
    index in `Endpoint.peers` that each goes to."""

    frames: NDArray[np.uint8]
    lengths: NDArray[np.uint32]
    peers: NDArray[np.uint32]

    def datagram(self, row: int) -> bytes:
        """The UDP payload in a row."""
        return self.frames[row, : self.lengths[row]].tobytes()

    def peer(self, row: int) -> int:
        """The peer that the packet is for."""
        return int(self.peers[row])


class Inbox:
    """Room for `capacity` UDP payloads that came, one a row; `count` rows are in use.

    A row is longer than the longest legal payload, so that one that is too long is seen to be.
    `buffer` is uint8 of shape (capacity, row bytes); `lengths` uint32 of shape (capacity,);
    `peers` uint32 of shape (capacity,): the sender's index in `Endpoint.peers`. A datagram of
    anybody else never comes here.
    """

    def __init__(self, capacity: int, longest_bytes: int) -> None:
        self.capacity = capacity
        self.row_bytes = (longest_bytes // 64 + 1) * 64
        self.buffer: NDArray[np.uint8] = np.zeros((capacity, self.row_bytes), np.uint8)
        self.lengths: NDArray[np.uint32] = np.zeros(capacity, np.uint32)
        self.peers: NDArray[np.uint32] = np.zeros(capacity, np.uint32)
        self.count = 0
        self.rows_address = self.buffer.ctypes.data
        self.lengths_address = self.lengths.ctypes.data
        self.peers_address = self.peers.ctypes.data

    def fill(self, datagrams: Sequence[bytes], peers: Sequence[int] | None = None) -> None:
        """Replace the contents; a payload longer than a row keeps the row's bytes and length.
        peers: the sender of each, by default the first."""
        for index, datagram in enumerate(datagrams):
            kept = datagram[: self.row_bytes]
            self.buffer[index, : len(kept)] = np.frombuffer(kept, np.uint8)
            self.lengths[index] = len(kept)
        self.count = len(datagrams)
        self.peers[: self.count] = 0 if peers is None else peers


class Endpoint(Protocol):
    """One agent's part in a system: a worker's, or a server's."""

    @property
    def peers(self) -> Sequence[Address]:
        """The addresses that it sends to and receives from; an aggregating switch is one of
        them."""

    @property
    def outbox(self) -> Outbox:
        """The packets whose rows `poll` names. It is a new object whenever its arrays are new."""

    @property
    def longest_bytes(self) -> int:
        """Length of the longest legal UDP payload, of both directions."""

    def begin(
        self,
        now_ns: int,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None,
    ) -> None:
        """Start the next round. `values` is what the workload brings to it and `out` is room for
        what comes of it, both flat, contiguous and aligned (workloads/). Of an all-reduce: reduce
        `values`, int32 or float32, over all workers into `out`, which has the same shape and dtype
        and may be `values` itself. `sums` takes the integers that came back, where a system sums
        integers for floats. The arrays belong to the endpoint until the round is done."""

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Takes the datagrams that came, and returns how many of them were awaited. Call `poll`
        next."""

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """The rows of the outbox to send now, in order, valid until the next call; sets
        `deadline_ns`. Raises RoundTimeout when nothing awaited came for the give-up time, and
        ShapeMismatch when the job's workers did not begin the same round."""

    def repeats(self, row: int) -> Repeat | None:
        """Whether the row that `poll` named is sent again, and what it is then."""

    @property
    def deadline_ns(self) -> int:
        """When to call `poll` although nothing came (the largest int64 if never)."""

    @property
    def done(self) -> bool:
        """The round is over for this agent (or none has begun). It may become so by `on_datagrams`
        and by `poll`."""

    @property
    def listens(self) -> bool:
        """Others may need it between rounds too (a server; an acknowledgement that was lost): then
        `on_datagrams` and `poll` are called at any time, and only `begin` tells of a round."""

    @property
    def chunks(self) -> int:
        """How many chunks the round has, for this agent."""

    @property
    def chunks_done(self) -> int: ...

    @property
    def in_flight(self) -> int:
        """How many packets wait for an answer."""

    @property
    def counters(self) -> Mapping[str, int]:
        """What was counted since the endpoint was made. Every system counts sent, received,
        retransmitted, duplicates, late, malformed, timeouts, bytes_sent and bytes_received; bytes
        are those of Ethernet frames without checksum."""

    def waiting(self, most: int) -> list[list[int]]:
        """Returns what it waits for, at most so many items; for messages and for the system's
        diagnosis."""

    def finish(self) -> None:
        """Raise NotFinite if the finished round has no finite result; the next may begin all the
        same."""
