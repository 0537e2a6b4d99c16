"""Derives the state of a worker's rounds from its TCP connections: the progress, which members are
missing, and when to give up. This module does not import PyTorch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Protocol

from agglab.hosts.part import Hooks
from agglab.hosts.round_driver import PROGRESS_INTERVAL_NS
from agglab.systems.gloo.counts import OWN_COUNTERS, counted
from agglab.systems.gloo.tcp import Connection, Info

STALL_NS = 500_000_000
"""The time without progress after which the other workers are probed."""


class Connected(Protocol):
    """The interface of a group of workers that are connected to each other."""

    @property
    def connections(self) -> Mapping[int, Connection]:
        """The connections to the other members, by rank. It is empty until all members are
        connected."""


class Watched:
    """The state of a worker's rounds, derived from its connections. The agent uses this object in
    place of an endpoint (hosts/endpoint.py). A chunk is the payload of one full segment:
    `chunk_bytes`."""

    def __init__(self, group: Connected, workers: int, rank: int, chunk_bytes: int) -> None:
        self._group, self._workers, self._rank = group, workers, rank
        self._chunk_bytes = chunk_bytes
        self._received_before = 0
        self._under_way = False
        self._windows = {"window_samples": 0, "window_segments": 0}
        self.chunks = self.chunks_done = 0

    def begin(self, tensor_bytes: int) -> None:
        """Begins a round that sums a tensor of `tensor_bytes` bytes."""
        share = 2 * (self._workers - 1) * tensor_bytes // self._workers
        self.chunks, self.chunks_done = max(1, -(-share // self._chunk_bytes)), 0
        self._received_before = self._moved(self.infos().values())[1]
        self._under_way = True

    def look(self) -> int:
        """Reads the state of the connections and updates the counts. Returns the number of bytes
        that the connections have moved so far."""
        infos = self.infos().values()
        for info in infos:
            if info.unacked:
                self._windows["window_samples"] += 1
                self._windows["window_segments"] += info.snd_cwnd
        acknowledged, received = self._moved(infos)
        most = self.chunks - 1  # the last is there when Gloo says so
        self.chunks_done = min(most, (received - self._received_before) // self._chunk_bytes)
        return acknowledged + received

    def finish(self) -> None:
        """Notes that the round has ended with a result."""
        self.chunks_done, self._under_way = self.chunks, False

    @staticmethod
    def _moved(infos: Iterable[Info]) -> tuple[int, int]:
        """Returns how many bytes the peers have acknowledged, and how many bytes were received."""
        return sum(i.bytes_acked for i in infos), sum(i.bytes_received for i in infos)

    def infos(self) -> Mapping[int, Info]:
        """Returns the present state of the connection to each other member, by rank."""
        return {rank: each.info() for rank, each in self._group.connections.items()}

    def closed(self) -> list[int]:
        """Returns the ranks of the members that have closed their connection to this worker."""
        return [rank for rank, info in self.infos().items() if not info.established]

    def silent(self) -> list[int]:
        """Returns the ranks of members that do not answer, and of members to which there is no
        connection yet."""
        infos = self.infos()
        others = (rank for rank in range(self._workers) if rank != self._rank)
        return [rank for rank in others if rank not in infos or infos[rank].silent]

    def probe(self) -> None:
        """Turns keep-alive on for all connections, so that silent members are found."""
        for connection in self._group.connections.values():
            connection.probe()

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [chunk, rank, certainty] for each member that may be the reason why this worker
        waits. chunk: the first chunk that did not come. certainty: 1 if the member has closed the
        connection or is silent. If there is no such member, the result names the next worker in
        Gloo's ring, with certainty 0. This next worker sends to this one and may itself be
        waiting."""
        if not self._under_way or self._workers == 1:
            return []
        if ranks := self.silent() or self.closed():
            return [[self.chunks_done, rank, 1] for rank in ranks][:most]
        return [[self.chunks_done, (self._rank + 1) % self._workers, 0]]

    @property
    def counters(self) -> Mapping[str, int]:
        """The counters of this session, by name."""
        names = dict.fromkeys(OWN_COUNTERS, 0)
        return {**names, **counted(self.infos().values()), **self._windows}


class Watch:
    """A clock for one round. It calls the hooks of the round, and determines when no byte has moved
    for too long."""

    def __init__(self, hooks: Hooks, give_up_ns: int) -> None:
        now_ns = time.monotonic_ns()
        self._hooks, self._give_up_ns = hooks, give_up_ns
        self._moved, self._moved_ns, self._now_ns = 0, now_ns, now_ns
        self._report_ns = now_ns + PROGRESS_INTERVAL_NS // 2
        self._stalled = False

    def turn(self, moved: int) -> None:
        """Updates the clock. moved: the number of bytes that have moved so far. Calls the hooks
        that are due."""
        self._now_ns = time.monotonic_ns()
        if moved != self._moved:
            self._moved, self._moved_ns, self._stalled = moved, self._now_ns, False
        if self._hooks.on_batch:
            self._hooks.on_batch()
        if self._now_ns >= self._report_ns:
            self._report_ns = self._now_ns + PROGRESS_INTERVAL_NS
            if self._hooks.on_progress:
                self._hooks.on_progress(self._now_ns)

    def stalls_first(self) -> bool:
        """Returns whether no byte has moved for a while. It returns true only once until bytes move
        again."""
        stalls = self._now_ns >= self._moved_ns + min(STALL_NS, self._give_up_ns // 4)
        first, self._stalled = stalls and not self._stalled, stalls
        return first

    def is_over(self) -> bool:
        """Returns whether no byte has moved for the give-up time."""
        return self._now_ns >= self._moved_ns + self._give_up_ns


def one_sentence(error: Exception) -> str:
    """Returns the first sentence of Gloo's message, without the position in its source."""
    text = str(error).strip().partition("\n")[0]
    return text.rpartition("] ")[2].partition(". ")[0] if text.startswith("[") else text
