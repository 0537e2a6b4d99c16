"""The part that all agents of a job have in common: it exchanges packets with the peers, delivers
each packet once, and counts packets."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.endpoint import NEVER_NS, Address, Inbox, Outbox, Repeat
from agglab.hosts.recovery import Recovery, Timing
from agglab.systems.mlfabric import wire
from agglab.systems.mlfabric.channel import WINDOW, Channel
from agglab.systems.mlfabric.wire import HEADER, HEADER_BYTES, Kind

FIELDS = struct.Struct("!BBHIHBBII")
"""The fields of HEADER again, because a single header is read and written faster in this way than
as an array."""
NUMBERED = struct.Struct("!BII")
"""The fields that are filled in when a packet is sent: attempt, incarnation, number."""
ATTEMPT_AT = HEADER.fields["attempt"][1]  # type: ignore[index]
assert (FIELDS.size, ATTEMPT_AT + NUMBERED.size) == (HEADER_BYTES, HEADER_BYTES)


class Message(NamedTuple):
    """A message that a peer has sent. peer: the index of the peer. run: the number of the training
    run. epoch: the epoch that the sender knew."""

    peer: int
    kind: Kind
    run: int
    epoch: int
    body: bytes


class Transport:
    """The exchange of packets with all peers of one agent. Peers are distinguished by their
    addresses, which the driver checks."""

    def __init__(
        self,
        job: int,
        session: int,
        lanes: int,
        peers: Sequence[Address],
        timing: Timing,
        hold_ns: int = 0,
    ) -> None:
        """Makes the transport. hold_ns: the longest time for which packets and their
        acknowledgements may wait in queues (Channel)."""
        self.peers = tuple(peers)
        self.lanes = lanes
        self.longest_bytes = wire.longest_datagram_bytes(lanes)
        self.counters = dict.fromkeys(shared.COUNTERS, 0)
        self.run = 0
        """The number of the training run in this session, from 1, modulo 2^16. It is 0 before the
        first run."""
        self.epoch = 0
        self.answered = 0
        """The number of awaited acknowledgements that have come."""
        self.heard_ns = [0] * len(self.peers)
        """The time at which something was last heard of each peer."""
        self._job, self._session = job, session
        self._incarnation = 0
        self._began = False
        self._incarnations: dict[int, int] = {}
        self._channels = [Channel(timing, hold_ns) for _ in self.peers]
        self._once: list[tuple[int, bytes | bytearray]] = []
        self._repeats: dict[int, Repeat] = {}
        self._make_outbox(4 * WINDOW)

    def begin(self, now_ns: int) -> None:
        """Sets this process's incarnation number from the clock, at the first call only.
        `on_datagrams` and `poll` call it too, because either may come first."""
        if not self._began:
            self._began = True
            self._incarnation = now_ns // 1000 % 2**32

    def send(self, peer: int, kind: Kind, body: bytes = b"") -> None:
        """Queues a message to a peer. The message is sent again until the peer has acknowledged
        it."""
        self._channels[peer].put(self._header(kind) + body)

    def send_once(self, peer: int, kind: Kind, body: bytes) -> None:
        """Queues a message that is sent only once. The sender never learns whether it has
        arrived."""
        self._once.append((peer, self._header(kind) + body))

    def _header(self, kind: Kind, attempt: int = 0, number: int = 0) -> bytes:
        job, session, sender = self._job, self._session, self._incarnation
        return FIELDS.pack(
            wire.VERSION, kind, job, session, self.run, self.epoch, attempt, sender, number
        )

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> Iterator[Message]:
        """Processes the datagrams in `inbox`, and yields the new messages among them."""
        self.begin(now_ns)
        for row in range(inbox.count):
            length, peer = int(inbox.lengths[row]), int(inbox.peers[row])
            payload = inbox.buffer[row, : min(length, inbox.row_bytes)].tobytes()
            self.counters["received"] += 1
            self.counters["bytes_received"] += wire.frame_bytes(length)
            message = self._opened(now_ns, peer, payload)
            if message is not None:
                yield message

    def _opened(self, now_ns: int, peer: int, payload: bytes) -> Message | None:
        if len(payload) < HEADER_BYTES:
            self.refuse()
            return None
        version, kind, job, session, run, epoch, attempt, sender, number = FIELDS.unpack_from(
            payload
        )
        body = payload[HEADER_BYTES:]
        fits = wire.is_of_legal_length(kind, len(body), self.lanes)
        if version != wire.VERSION or job != self._job or not fits:
            self.refuse()
        elif session != self._session or self._incarnations.setdefault(peer, sender) != sender:
            self.is_late()
        elif kind == Kind.ACK:
            self._answered(now_ns, peer, number, attempt)
        elif kind == Kind.SUMMED or self._is_new(peer, number, attempt):
            self.heard_ns[peer] = now_ns
            return Message(peer, Kind(kind), run, epoch, body)
        return None

    def _answered(self, now_ns: int, peer: int, number: int, attempt: int) -> None:
        if self._channels[peer].answered(now_ns, number, attempt):
            self.answered += 1
            self.heard_ns[peer] = now_ns
        else:
            self.counters["duplicates"] += 1

    def _is_new(self, peer: int, number: int, attempt: int) -> bool:
        """Returns whether a packet has come for the first time, and queues its acknowledgement."""
        new = self._channels[peer].hears(number)
        if new is None:
            self.refuse()
            return False
        self._once.append((peer, self._header(Kind.ACK, attempt, number)))
        self.counters["duplicates"] += not new
        return new

    def refuse(self) -> None:
        """Counts a packet that no agent of the job can have sent."""
        self.counters["malformed"] += 1

    def is_late(self) -> None:
        """Counts a packet of a run or a session that is over, or of a server that has been
        replaced."""
        self.counters["late"] += 1

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now."""
        self.begin(now_ns)
        rows, self._once = self._once, []
        if self._repeats:
            self._repeats = {}
        for peer, channel in enumerate(self._channels):
            if now_ns < channel.deadline_ns:
                continue
            for number, attempt, first_ns, payload in channel.due(now_ns):
                if attempt:
                    self._repeats[len(rows)] = Repeat(None, number, first_ns)
                numbered = bytearray(payload)
                NUMBERED.pack_into(numbered, ATTEMPT_AT, attempt, self._incarnation, number)
                rows.append((peer, numbered))
        if self._repeats:
            counters = self.counters
            counters["retransmitted"] = sum(one.retransmitted for one in self._channels)
            counters["timeouts"] = sum(one.timeouts for one in self._channels)
        return self._put_out(rows)

    def _put_out(self, rows: Sequence[tuple[int, bytes | bytearray]]) -> NDArray[np.uint32]:
        """Writes the packets (peer, payload) into the first rows of the outbox and counts them.
        Returns these rows."""
        if len(rows) > len(self._numbers):
            self._make_outbox(2 * len(rows))
        outbox, counters = self.outbox, self.counters
        for row, (peer, payload) in enumerate(rows):
            length, begin = len(payload), row * self.longest_bytes
            self._frames[begin : begin + length] = payload
            outbox.lengths[row], outbox.peers[row] = length, peer
            counters["bytes_sent"] += wire.frame_bytes(length)
        counters["sent"] += len(rows)
        return self._numbers[: len(rows)]

    def _make_outbox(self, rows: int) -> None:
        """Makes an outbox with this number of rows."""
        frames = np.zeros((rows, self.longest_bytes), np.uint8)
        self.outbox = Outbox(frames, np.zeros(rows, np.uint32), np.zeros(rows, np.uint32))
        self._frames = memoryview(self.outbox.frames.data).cast("B")
        self._numbers = np.arange(rows, dtype=np.uint32)

    def repeats(self, row: int) -> Repeat | None:
        """Returns facts about the packet in row `row` if it is sent again (Endpoint.repeats)."""
        return self._repeats.get(row)

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The `Recovery` objects, from which hosts/recording.py reads round trips and latencies."""
        return tuple(one.recovery for one in self._channels)

    @property
    def in_flight(self) -> int:
        return sum(one.in_flight for one in self._channels)

    def load(self, peer: int) -> int:
        """Returns the number of packets to a peer that are in flight or queued, at most the
        window."""
        channel = self._channels[peer]
        return min(WINDOW, channel.in_flight + channel.queued)

    def is_idle(self, peer: int) -> bool:
        """Returns whether all packets to a peer have been sent at least once."""
        return not self._channels[peer].queued

    @property
    def deadline_ns(self) -> int:
        return min((one.deadline_ns for one in self._channels), default=NEVER_NS)
