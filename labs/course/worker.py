"""A worker of the course: what runs at each host.

The worker cuts its tensor into chunks of four numbers. It sends each chunk to the switch in one
packet and waits for the sum of that chunk. The class has no socket and no clock: its methods are
given packets and the time, and return what to send (hosts/endpoint.py is the contract).
"""

import struct

import numpy as np

from agglab.hosts.endpoint import NEVER_NS, Outbox, Repeat
from agglab.hosts.errors import RoundTimeout

# The header of a packet: kind, worker, slot, tag. Four numbers follow, in network byte order too.
HEADER = struct.Struct("!BBHI")
NUMBERS = 4
CONTRIBUTION, RESULT = 1, 2
PAYLOAD_BYTES = HEADER.size + 4 * NUMBERS
LOWER_HEADER_BYTES = 42  # Ethernet 14, IPv4 20, UDP 8
TAGS_OF_A_SESSION = 1 << 20
COUNTERS = (
    *("sent", "received", "retransmitted", "duplicates", "late", "malformed", "timeouts"),
    *("bytes_sent", "bytes_received"),
)


def endpoint(part):
    """Returns the state machine of one worker, for the agent. hosts/part.py describes a Part."""
    return SparseWorker(part) if part.settings["sparse"] else Worker(part)


class Worker:
    """slots: how many slots the switch has. ahead: how many chunks of one slot may be under way at
    the same time. timeout_ns: when a chunk without a result is sent again; NEVER_NS for never."""

    listens = False
    longest_bytes = PAYLOAD_BYTES
    deadline_ns = NEVER_NS

    def __init__(self, part):
        self.peers, self.rank = part.peers, part.rank
        self.slots, self.ahead = part.settings["slots"], part.settings["ahead"]
        self.timeout_ns = part.settings["timeout_ns"] or NEVER_NS
        self.give_up_ns = round(part.give_up_s * 1e9)
        self.first = (part.settings["session"] - 1) * TAGS_OF_A_SESSION * self.slots
        self.chunks = self.chunks_done = self.next_chunk = 0
        self.waiting_since = {}  # chunk without a result -> (first sent, last sent)
        self.outbox = Outbox(np.zeros((0, 1), np.uint8), *(np.zeros(0, np.uint32) for _ in "np"))
        self.again = {}
        self.progress_ns = 0
        self.counters = dict.fromkeys(COUNTERS, 0)

    @property
    def done(self):
        return self.chunks_done == self.chunks

    @property
    def in_flight(self):
        return len(self.waiting_since)

    def begin(self, now_ns, values, out, sums=None):
        """Starts a round. Slots and tags go on where the last round ended."""
        self.first += self.chunks
        self.chunks, self.chunks_done, self.next_chunk = -(-values.size // NUMBERS), 0, 0
        self.values = np.zeros((self.chunks, NUMBERS), ">i4")
        self.values.reshape(-1)[: values.size] = values
        self.out, self.progress_ns = out, now_ns
        self.finished = [False] * self.chunks

    def slot_and_tag(self, chunk):
        """Chunk 0 goes to slot 0, chunk 1 to slot 1 and so on. When all slots are used, slot 0
        comes again, with the next tag."""
        tag, slot = divmod(self.first + chunk, self.slots)
        return slot, tag

    def on_datagrams(self, now_ns, inbox):
        wanted = 0
        for row in range(inbox.count):
            payload = inbox.buffer[row, : inbox.lengths[row]].tobytes()
            self.counters["received"] += 1
            self.counters["bytes_received"] += LOWER_HEADER_BYTES + len(payload)
            wanted += self._receive(now_ns, payload)
        return wanted

    def _receive(self, now_ns, payload):
        """Returns whether the packet is a result for which the worker waits."""
        if len(payload) != self.longest_bytes or payload[0] != RESULT:
            self.counters["malformed"] += 1
            return False
        _, _, slot, tag = HEADER.unpack_from(payload)
        chunk = tag * self.slots + slot - self.first
        if self.waiting_since.pop(chunk, None) is None:
            self.counters["duplicates"] += 1
            return False
        numbers = np.frombuffer(payload, ">i4", NUMBERS, self.longest_bytes - 4 * NUMBERS)
        begin = chunk * NUMBERS
        self.out[begin : begin + NUMBERS] = numbers[: self.out.size - begin]
        self.progress_ns = now_ns
        self.take_result(chunk, payload)
        return True

    def take_result(self, chunk, payload):
        """Notes that the sum of this chunk is in the result of the round."""
        self.finished[chunk] = True
        self.chunks_done += 1

    def may_send(self, chunk):
        """A slot takes a new chunk when the result of an older chunk of the same slot has come."""
        older = chunk - self.slots * self.ahead
        return chunk < self.chunks and (older < 0 or self.finished[older])

    def poll(self, now_ns):
        """Returns the rows of the outbox to send: chunks that were lost, and chunks that may be
        sent for the first time."""
        if self.waiting_since and now_ns >= self.progress_ns + self.give_up_ns:
            raise RoundTimeout(f"no result for chunk {min(self.waiting_since)}", None)
        lost = [
            chunk
            for chunk, (_, last_ns) in self.waiting_since.items()
            if now_ns >= last_ns + self.timeout_ns
        ]
        chunks = [*lost, *self.fresh(now_ns)]
        self._write(chunks, len(lost), now_ns)
        due = [last_ns + self.timeout_ns for _, last_ns in self.waiting_since.values()]
        self.deadline_ns = (
            min(*due, self.progress_ns + self.give_up_ns, NEVER_NS) if due else NEVER_NS
        )
        return np.arange(len(chunks), dtype=np.uint32)

    def fresh(self, now_ns):
        """Yields the chunks that are sent for the first time now."""
        while self.may_send(self.next_chunk):
            yield self.next_chunk
            self.next_chunk += 1

    def packet(self, chunk):
        """Returns the UDP payload of this chunk."""
        header = HEADER.pack(CONTRIBUTION, self.rank, *self.slot_and_tag(chunk))
        return header + self.values[chunk].tobytes()

    def _write(self, chunks, lost, now_ns):
        """Fills the outbox with the packets of these chunks. The first `lost` were sent before."""
        self.again = {}
        frames = np.zeros((len(chunks), self.longest_bytes), np.uint8)
        for row, chunk in enumerate(chunks):
            first_ns = self.waiting_since[chunk][0] if row < lost else now_ns
            self.waiting_since[chunk] = first_ns, now_ns
            if row < lost:
                self.again[row] = Repeat(*self.slot_and_tag(chunk), first_ns, gathered=True)
            frames[row] = np.frombuffer(self.packet(chunk), np.uint8)
        self.counters["sent"] += len(chunks)
        self.counters["bytes_sent"] += (LOWER_HEADER_BYTES + self.longest_bytes) * len(chunks)
        self.counters["retransmitted"] += lost
        self.counters["timeouts"] += lost
        lengths = np.full(len(chunks), self.longest_bytes, np.uint32)
        self.outbox = Outbox(frames, lengths, np.zeros(len(chunks), np.uint32))

    def repeats(self, row):
        return self.again.get(row)

    def waiting(self, most):
        return [[chunk, *self.slot_and_tag(chunk)] for chunk in self.waiting_since][:most]

    def finish(self):
        """An all-reduce of integers needs no last step."""


class SparseWorker(Worker):
    """The worker of lab 08, which sends only chunks that are not zero; the first chunk is always
    sent. A field `next` follows the header. In a worker's packet it names the next chunk that the
    worker will send; in a result, the next chunk that any worker will send. After the last chunk of
    a round it is the first one of the next round. Results have to come in their order."""

    NEXT = struct.Struct("!I")
    longest_bytes = PAYLOAD_BYTES + NEXT.size

    def begin(self, now_ns, values, out, sums=None):
        super().begin(now_ns, values, out, sums)
        out[:] = 0
        self.mine = {0, *np.flatnonzero(self.values.any(axis=1)).tolist()}

    def packet(self, chunk):
        following = min((each for each in self.mine if each > chunk), default=self.chunks)
        contribution = super().packet(chunk)
        next_chunk = self.NEXT.pack(self.first + following)
        return contribution[: HEADER.size] + next_chunk + contribution[HEADER.size :]

    def fresh(self, now_ns):
        """Yields the chunk whose turn it is, if this worker has it."""
        if self.next_chunk in self.mine and self.next_chunk not in self.waiting_since:
            yield self.next_chunk

    def take_result(self, chunk, payload):
        """The result says which chunk is next; those between are zero at every worker. A worker
        that does not have the next chunk waits for its result at once."""
        (following,) = self.NEXT.unpack_from(payload, HEADER.size)
        self.next_chunk = min(max(following - self.first, chunk + 1), self.chunks)
        self.chunks_done = self.next_chunk
        if self.next_chunk not in self.mine and not self.done:
            self.waiting_since[self.next_chunk] = self.progress_ns, self.progress_ns
