"""Endpoints of gather.py: see hosts/endpoint.py. A packet is a chunk's index and its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from agglab.hosts.endpoint import Address, Inbox, Outbox, Repeat
from agglab.hosts.part import SERVER, Part

HEADER_BYTES, LOWER_HEADER_BYTES = 4, 42
NEVER_NS = 2**63 - 1
FRAMES = ["sent", "received", "retransmitted", "duplicates", "late", "malformed", "timeouts"]
COMMON = [*FRAMES, "bytes_sent", "bytes_received"]


def frame_bytes(values: int) -> int:
    return LOWER_HEADER_BYTES + HEADER_BYTES + 4 * values


def round_bytes(elements: int, lanes: int) -> int:
    chunks = -(-elements // lanes)
    return chunks * frame_bytes(0) + 4 * elements


def endpoint(part: Part) -> Gatherer:
    return Gatherer(part)


class Gatherer:
    """Both roles. A worker sends every chunk and keeps each answer; a server sends a chunk's sum to
    all once everybody's part is there."""

    deadline_ns = NEVER_NS
    in_flight = 0

    def __init__(self, part: Part) -> None:
        self._part = part
        self._lanes = part.settings["lanes"]
        self.peers: Sequence[Address] = part.peers
        self.listens = part.role == SERVER
        self.longest_bytes = HEADER_BYTES + 4 * self._lanes
        self.chunks = -(-part.elements // self._lanes)
        self.chunks_done = self.chunks
        self.counters: Mapping[str, int] = dict.fromkeys([*COMMON, "rounds_served"], 0)
        self._queue: list[tuple[int, bytes]] = []
        self._sums: dict[int, list[np.ndarray]] = {}
        self._out = np.zeros(0, np.int32)
        self.outbox = Outbox(*(np.zeros((0, 0), np.uint8), *(np.zeros(0, np.uint32),) * 2))

    @property
    def done(self) -> bool:
        return self.chunks_done == self.chunks

    def begin(self, now_ns: int, values: np.ndarray, out: np.ndarray, sums: object) -> None:
        self._out, self.chunks_done = out, 0
        for index in range(self.chunks):
            part = values[index * self._lanes : (index + 1) * self._lanes]
            self._queue.append((0, index.to_bytes(4, "big") + part.astype(">i4").tobytes()))

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        for row in range(inbox.count):
            payload = inbox.buffer[row, : inbox.lengths[row]].tobytes()
            self._count("received", 1)
            self._count("bytes_received", LOWER_HEADER_BYTES + len(payload))
            index = int.from_bytes(payload[:4], "big")
            values = np.frombuffer(payload[4:], ">i4").astype(np.int32)
            if self._part.role == SERVER:
                self._add(index, values)
            else:
                self._out[index * self._lanes : index * self._lanes + values.size] = values
                self.chunks_done += 1
        return inbox.count

    def _add(self, index: int, values: np.ndarray) -> None:
        parts = self._sums.setdefault(index, [])
        parts.append(values)
        if len(parts) == self._part.workers:
            total = np.sum(self._sums.pop(index), axis=0, dtype=np.int32)
            answer = index.to_bytes(4, "big") + total.astype(">i4").tobytes()
            self._queue += [(peer, answer) for peer in range(len(self.peers))]
            self._count("rounds_served", int(index == self.chunks - 1))

    def poll(self, now_ns: int) -> np.ndarray:
        queue, self._queue = self._queue, []
        frames = np.zeros((len(queue), self.longest_bytes), np.uint8)
        for row, (_, payload) in enumerate(queue):
            frames[row, : len(payload)] = np.frombuffer(payload, np.uint8)
            self._count("sent", 1)
            self._count("bytes_sent", LOWER_HEADER_BYTES + len(payload))
        lengths = np.array([len(payload) for _, payload in queue], np.uint32)
        self.outbox = Outbox(frames, lengths, np.array([peer for peer, _ in queue], np.uint32))
        return np.arange(len(queue), dtype=np.uint32)

    def _count(self, name: str, more: int) -> None:
        self.counters = {**self.counters, name: self.counters[name] + more}

    def repeats(self, row: int) -> Repeat | None:
        return None

    def waiting(self, most: int) -> list[list[int]]:
        return []

    def finish(self) -> None: ...
