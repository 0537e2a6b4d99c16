"""The interface between systems and drivers. A system gives each agent an endpoint, a state machine
that performs the agent's part in a round. A driver has a socket or a virtual clock and drives the
endpoint:

    endpoint.begin(now_ns, values, out, sums)
    while not endpoint.done:
        for row in endpoint.poll(now_ns):
            send outbox.datagram(row) to endpoint.peers[outbox.peer(row)]
        wait for datagrams until endpoint.deadline_ns
        endpoint.on_datagrams(now_ns, batch)
    endpoint.finish()

Times are integers, nanoseconds of any monotonic clock. An endpoint uses neither sockets nor clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.structures import U8, U32, U64, Pointer, ReadOnly, Structure, structure

Address = tuple[str, int]
"""An IPv4 address and a UDP port."""
NEVER_NS = 2**63 - 1
"""The deadline of whoever waits for no time: the largest int64."""
PRESENCE = "presence"
"""The name of the array that says who is in the sum of each chunk (uint64, a bit for each worker).
Only some systems leave it."""
Others = Callable[[bytes], list[tuple[int, int]]]
"""A function that returns, for a datagram that carries packets of several chunks, the slot and the
tag of each chunk but the one that the header names. An endpoint that sends such datagrams has a
method `others` of this type. It takes any bytes, because it is also asked about forged datagrams.
"""


Packets = Callable[[], "NDArray[np.void] | None"]
"""Returns the packets that wait for an answer, or that did last: records that begin with
a recovery.Pending and the packet's number, with one record for each place (Repeat). An endpoint
whose packets switches aggregate has them as its property `packets`. None if the agent has ended."""


class Repeat(NamedTuple):
    """Facts about a packet that is sent again.

    place, number: which packet of the protocol it is. Where switches aggregate, these are its slot
    and its tag, which can be compared between all agents of a job. place is None if only the
    packet's receiver can have failed to answer. first_sent_ns: when the packet was first sent.
    gathered: whether the receiver answers only when it has received such a packet from every worker
    of the job. before: the slot and tag of the chunk whose result an agent must have before it
    sends this one; None if that is the tag before on the same slot. meets: whether the workers meet
    at this packet, so that each may send it as much later than the others as its work takes.
    """

    place: int | None
    number: int
    first_sent_ns: int
    gathered: bool = False
    before: tuple[int, int] | None = None
    meets: bool = False


class Outbox(NamedTuple):
    """Room for datagrams that an endpoint may have to send: each row holds one datagram. frames:
    uint8 of shape (rows, row bytes). lengths: uint32 of shape (rows,), which may be a strided view.
    peers: uint32 of shape (rows,), the receiver's index in `Endpoint.peers`. answers: how many
    datagrams may arrive for each row while the endpoint is busy with something else."""

    frames: NDArray[np.uint8]
    lengths: NDArray[np.uint32]
    peers: NDArray[np.uint32]
    answers: int = 1

    def datagram(self, row: int) -> bytes:
        """Returns the UDP payload that row `row` holds."""
        return self.frames[row, : self.lengths[row]].tobytes()

    def peer(self, row: int) -> int:
        """Returns the index in `Endpoint.peers` of the receiver of the packet in row `row`."""
        return int(self.peers[row])


@structure("outbox")
class OutboxColumns(Structure):
    """An Outbox for C code: where its columns are, and how far apart the rows of each are."""

    frames: Pointer[U8]
    frame_stride: U64
    lengths: Pointer[U8]
    length_stride: U64
    peers: Pointer[U8]
    peer_stride: U64

    @classmethod
    def of(cls, outbox: Outbox) -> OutboxColumns:
        columns = (outbox.frames, outbox.lengths, outbox.peers)
        assert outbox.lengths.dtype == outbox.peers.dtype == np.uint32
        return cls(*(word for c in columns for word in (c.ctypes.data, c.strides[0])))


@structure("rows")
class Rows(Structure):
    """Datagrams that came, for C code: an Inbox, or a part of one."""

    first: ReadOnly[U8]
    row_bytes: U64
    lengths: ReadOnly[U32]
    peers: ReadOnly[U32]  # indices of the senders
    count: U32


class Inbox:
    """Room for `capacity` received UDP payloads: each row holds one payload. `count` rows are in
    use.

    A row is longer than the longest legal payload, so that a payload that is too long can be
    recognized. `buffer` is uint8 of shape (capacity, row bytes). `lengths` is uint32 of shape
    (capacity,). `peers` is uint32 of shape (capacity,): the sender's index in `Endpoint.peers`.
    Datagrams from senders that are not peers are never put here. `address` is that of its `Rows`.
    """

    def __init__(self, capacity: int, longest_bytes: int) -> None:
        self.capacity = capacity
        self.row_bytes = (longest_bytes // 64 + 1) * 64
        self.buffer: NDArray[np.uint8] = np.zeros((capacity, self.row_bytes), np.uint8)
        self.lengths: NDArray[np.uint32] = np.zeros(capacity, np.uint32)
        self.peers: NDArray[np.uint32] = np.zeros(capacity, np.uint32)
        self._rows = Rows(first=self.buffer, row_bytes=self.row_bytes)
        self._rows.lengths, self._rows.peers = self.lengths, self.peers
        self.address = self._rows.address
        self._bytes = memoryview(self.buffer.data).cast("B")

    @property
    def count(self) -> int:
        """The number of rows in use."""
        return self._rows.count

    @count.setter
    def count(self, count: int) -> None:
        self._rows.count = count

    def fill(self, datagrams: Sequence[bytes], peers: Sequence[int] | None = None) -> None:
        """Replaces the contents with `datagrams`. If a payload is longer than a row, only its
        beginning is kept. peers: the sender of each payload, by default the first peer."""
        for index, datagram in enumerate(datagrams):
            length, begin = min(len(datagram), self.row_bytes), index * self.row_bytes
            self._bytes[begin : begin + length] = datagram[:length]
            self.lengths[index] = length
            self.peers[index] = 0 if peers is None else peers[index]
        self.count = len(datagrams)


class Endpoint(Protocol):
    """The interface of an endpoint: one agent's part in a system, as a worker, a server or a
    scheduler."""

    @property
    def peers(self) -> Sequence[Address]:
        """The addresses to which the endpoint sends and from which it receives. An aggregating
        switch is one of them."""

    @property
    def outbox(self) -> Outbox:
        """The Outbox whose rows `poll` returns. When its arrays are replaced, this is a new
        object."""

    @property
    def longest_bytes(self) -> int:
        """The length of the longest legal UDP payload, in either direction."""

    def begin(
        self,
        now_ns: int,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None,
    ) -> None:
        """Starts the next round. `values` is the input that the workload gives to the round. `out`
        is room for the output. Both are flat, contiguous and aligned (workloads/).

        In an all-reduce, `values` is int32 or float32 and is summed over all workers into `out`.
        `out` has the same shape and dtype and may be `values` itself. If a system sums integers for
        floats, `sums` takes the integers that came back. The arrays belong to the endpoint until
        the round is done.
        """

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`, which came at `now_ns`. Returns how many of them the
        endpoint had waited for. The caller must call `poll` next."""

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now, in order, and sets `deadline_ns`. The
        returned array is valid until the next call. Raises RoundTimeout when nothing that the
        endpoint waits for has come for the give-up time. Raises ShapeMismatch when the job's
        workers did not begin the same round."""

    def repeats(self, row: int) -> Repeat | None:
        """Returns facts about the packet in row `row`, which `poll` has returned, if the packet is
        sent again. Returns None if it is sent for the first time."""

    @property
    def deadline_ns(self) -> int:
        """The time at which `poll` must be called even if no datagram has come. It is the largest
        int64 if there is no such time."""

    @property
    def done(self) -> bool:
        """Whether the round is over for this agent, or no round has begun. Both `on_datagrams` and
        `poll` can end a round."""

    @property
    def listens(self) -> bool:
        """Whether other agents may need the endpoint between rounds too. Examples are a server, and
        a worker whose last acknowledgement was lost. Then `on_datagrams` and `poll` may be called
        at any time, and a round begins only when `begin` is called."""

    @property
    def chunks(self) -> int:
        """The number of chunks that this agent has in the round."""

    @property
    def chunks_done(self) -> int: ...

    @property
    def in_flight(self) -> int:
        """The number of packets that wait for an answer."""

    @property
    def counters(self) -> Mapping[str, int]:
        """The counters by name; they count from the creation of the endpoint. Every system has
        sent, received, retransmitted, duplicates, late, malformed, timeouts, bytes_sent and
        bytes_received. Bytes are those of Ethernet frames without checksum."""

    def waiting(self, most: int) -> list[list[int]]:
        """Returns a description of what the endpoint waits for, in at most `most` items. What the
        numbers of an item are depends on the system. Error messages and the system's diagnosis use
        them."""

    def finish(self) -> None:
        """Raises NotFinite if the finished round has no finite result. The next round may begin
        even then."""
