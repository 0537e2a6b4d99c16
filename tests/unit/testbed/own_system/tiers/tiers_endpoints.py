"""A worker, a server and a scheduler of tiers.py: hosts/endpoint.py. None of them knows losses."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np

from agglab.hosts.endpoint import Inbox, Outbox
from agglab.hosts.part import SCHEDULER, SERVER, Part

HEADER = struct.Struct("!BBHI")  # kind, count, round, chunk or batch
REQUEST, GRANT, PUSH, RESULT = 1, 2, 3, 4
LANES, BATCH, LOWER_HEADER_BYTES = 4, 16, 42
NEVER_NS = 2**63 - 1
FRAMES = ("sent", "received", "retransmitted", "duplicates", "late", "malformed", "timeouts")


def endpoint(part: Part) -> Agent:
    return {SERVER: Server, SCHEDULER: Scheduler}.get(part.role, Worker)(part)


class Agent:
    """What all three have: peers, a queue of what to send, counts."""

    deadline_ns, in_flight, listens, done = NEVER_NS, 0, True, True
    longest_bytes = HEADER.size + 4 * LANES

    def __init__(self, part: Part) -> None:
        self.part, self.peers = part, part.peers
        self.counters = dict.fromkeys([*FRAMES, "bytes_sent", "bytes_received"], 0)
        self.queue: list[tuple[int, bytes]] = []
        self.outbox = Outbox(np.zeros((0, 0), np.uint8), *(np.zeros(0, np.uint32),) * 2)
        self.chunks = self.chunks_done = 0

    def put(self, peers, kind: int, number: int, at: int, values: bytes = b"") -> None:
        frame = HEADER.pack(kind, 1, number, at) + values
        self.queue += [(peer, frame) for peer in peers]

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        for row in range(inbox.count):
            payload = inbox.buffer[row, : inbox.lengths[row]].tobytes()
            self.counters["received"] += 1
            self.counters["bytes_received"] += LOWER_HEADER_BYTES + len(payload)
            values = np.frombuffer(payload[HEADER.size :], ">i4").astype(np.int32)
            self.take(*HEADER.unpack_from(payload), values)
        return inbox.count

    def poll(self, now_ns: int) -> np.ndarray:
        queue, self.queue = self.queue, []
        frames = np.zeros((len(queue), self.longest_bytes), np.uint8)
        for row, (_, payload) in enumerate(queue):
            frames[row, : len(payload)] = np.frombuffer(payload, np.uint8)
            self.counters["sent"] += 1
            self.counters["bytes_sent"] += LOWER_HEADER_BYTES + len(payload)
        lengths = np.array([len(payload) for _, payload in queue], np.uint32)
        self.outbox = Outbox(frames, lengths, np.array([peer for peer, _ in queue], np.uint32))
        return np.arange(len(queue), dtype=np.uint32)

    def begin(self, *_: object) -> None:
        raise TypeError("begins no round")

    def repeats(self, row: int) -> None: ...

    def waiting(self, most: int) -> list[list[int]]:
        return []

    def finish(self) -> None: ...


class Worker(Agent):
    """Asks the scheduler (its last peer) for each batch of chunks, and pushes it when granted."""

    listens, number = False, -1

    @property
    def done(self) -> bool:
        return self.chunks_done == self.chunks

    def begin(self, now_ns: int, values: np.ndarray, out: np.ndarray, sums: object) -> None:
        self.number, self.out, self.chunks_done = self.number + 1, out, 0
        self.chunks = -(-values.size // LANES)
        self.values = np.zeros(self.chunks * LANES, ">i4")
        self.values[: values.size] = values
        self.put([len(self.peers) - 1], REQUEST, self.number, 0)

    def take(self, kind: int, count: int, number: int, at: int, values: np.ndarray) -> None:
        if kind == GRANT:
            for chunk in range(at * BATCH, min(self.chunks, (at + 1) * BATCH)):
                mine = self.values[chunk * LANES : (chunk + 1) * LANES].tobytes()
                self.put([chunk % (len(self.peers) - 1)], PUSH, number, chunk, mine)
            return
        self.out[at * LANES : (at + 1) * LANES] = values[: self.out.size - at * LANES]
        self.chunks_done += 1
        if self.chunks_done % BATCH == 0 and not self.done:
            self.put([len(self.peers) - 1], REQUEST, number, self.chunks_done // BATCH)


class Server(Agent):
    """Adds what comes until all workers are in it, whoever added them up before."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.sums: dict[int, np.ndarray] = {}
        self.counts: Counter[int] = Counter()

    def take(self, kind: int, count: int, number: int, at: int, values: np.ndarray) -> None:
        self.sums[at] = self.sums.get(at, np.zeros(LANES, np.int32)) + values
        self.counts[at] += count
        if self.counts[at] == self.part.workers:
            total = self.sums.pop(at).astype(">i4").tobytes()
            del self.counts[at]
            self.put(range(len(self.peers)), RESULT, number, at, total)


class Scheduler(Agent):
    """Grants a batch when all workers have asked for it."""

    asked = 0

    def take(self, kind: int, count: int, number: int, at: int, values: np.ndarray) -> None:
        self.asked += 1
        if self.asked == self.part.workers:
            self.asked = 0
            self.put(range(len(self.peers)), GRANT, number, at)
