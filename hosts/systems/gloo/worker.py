"""One worker that sums by Gloo, over TCP connections that Gloo makes: docs/systems/gloo.md.

Gloo moves the packets in threads of its own. This module starts a sum, watches the connections
until it has ended, and says in one line what happened if it fails.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agglab.hosts.driver import PROGRESS_INTERVAL_NS
from agglab.hosts.errors import AllReduceError, RoundTimeout
from agglab.hosts.part import Hooks, Part
from agglab.hosts.systems import shared
from agglab.hosts.systems.gloo.counts import OWN_COUNTERS, counted
from agglab.hosts.systems.gloo.group import Group
from agglab.hosts.systems.gloo.tcp import Info

JOIN_S = 3.5
"""How long a session's begin waits for all members: two SYNs may be lost, the second of which is
sent again 3 s after the first. A worker that was started again waits in vain, for members of a
session that is over."""
LOOK_S = 0.02
"""How often connections are looked at within a round."""
STALL_NS = 500_000_000
"""When nothing has moved for so long, the other workers are asked whether they are there."""


class Watched:
    """What is known of a worker's rounds from its connections; the agent asks it as it asks an
    endpoint (hosts/endpoint.py). A chunk is what one full segment carries: `chunk_bytes`."""

    def __init__(self, group: Group, workers: int, rank: int, chunk_bytes: int) -> None:
        self._group, self._workers, self._rank = group, workers, rank
        self._chunk_bytes = chunk_bytes
        self._received_before = 0
        self._under_way = False
        self._windows = {"window_samples": 0, "window_segments": 0}
        self.chunks = self.chunks_done = 0

    def begin(self, tensor_bytes: int) -> None:
        """A round of so many bytes."""
        share = 2 * (self._workers - 1) * tensor_bytes // self._workers
        self.chunks, self.chunks_done = max(1, -(-share // self._chunk_bytes)), 0
        self._received_before = self._moved(self.infos().values())[1]
        self._under_way = True

    def look(self) -> int:
        """Take notice of what the connections did; returns the bytes that they have moved."""
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
        """The round has its result."""
        self.chunks_done, self._under_way = self.chunks, False

    @staticmethod
    def _moved(infos: Any) -> tuple[int, int]:
        """Bytes acknowledged by peers, and received."""
        return sum(i.bytes_acked for i in infos), sum(i.bytes_received for i in infos)

    def infos(self) -> Mapping[int, Info]:
        """Rank -> its connection now."""
        return {rank: each.info() for rank, each in self._group.connections.items()}

    def closed(self) -> list[int]:
        """Ranks that have closed their connection with this worker."""
        return [rank for rank, info in self.infos().items() if not info.established]

    def silent(self) -> list[int]:
        """Ranks that answer nothing, or with which there is no connection yet."""
        infos = self.infos()
        others = (rank for rank in range(self._workers) if rank != self._rank)
        return [rank for rank in others if rank not in infos or infos[rank].silent]

    def probe(self) -> None:
        """Find out who is silent."""
        for connection in self._group.connections.values():
            connection.probe()

    def waiting(self, most: int) -> list[list[int]]:
        """[chunk, rank, is sure]: the first chunk that did not come, and of whom it is waited for:
        who has closed the connection or is silent, or else the next worker, which sends here in
        Gloo's ring and may itself be waiting."""
        if not self._under_way or self._workers == 1:
            return []
        if ranks := self.silent() or self.closed():
            return [[self.chunks_done, rank, 1] for rank in ranks][:most]
        return [[self.chunks_done, (self._rank + 1) % self._workers, 0]]

    @property
    def counters(self) -> Mapping[str, int]:
        """What was counted in this session."""
        names = dict.fromkeys(OWN_COUNTERS, 0)
        return {**names, **counted(self.infos().values()), **self._windows}


class GlooReducer:
    """A worker in one session. For one thread at a time."""

    def __init__(self, part: Part, hooks: Hooks) -> None:
        self._part, self._hooks = part, hooks
        self._give_up_ns = round(part.give_up_s * shared.NS_PER_S)
        self._group = Group(part)
        self._broken = False
        self.endpoint = Watched(self._group, part.workers, part.rank, part.settings["chunk_bytes"])
        with contextlib.suppress(AllReduceError):  # the first round says it, which a job survives
            self._group.joined(JOIN_S)

    def all_reduce(self, array: NDArray, out: NDArray, sums: NDArray | None = None) -> NDArray:
        """See all_reduce.Reducer, whose arrays are those of a workload: flat and contiguous."""
        self.run(array, out, sums)
        return out

    def run(self, values: NDArray, total: NDArray, sums: NDArray | None) -> None:
        """One round: the sum of `values` over all workers into `total`, int32 or float32, flat.
        `sums` stays as it is. Raises NotFinite, and RoundTimeout when somebody is missing; after
        that the session is over."""
        shared.check_arrays(values, total)
        if self._broken:
            raise AllReduceError(f"job {self._part.job}: a round before this one did not end")
        self._broken = True
        self.endpoint.begin(values.nbytes)
        try:
            self._sum(values, total)
        except BaseException:
            self._group.break_off()
            raise
        self.endpoint.finish()
        self._broken = False
        shared.check_finite(total, self._part.job)

    def _sum(self, values: NDArray, total: NDArray) -> None:
        watch = Watch(self._hooks, self._give_up_ns)
        while not self._is_joined():
            watch.turn(0)
            if watch.is_over():
                raise self._missing("no connection with")
        if total is not values:
            np.copyto(total, values)
        work = self._group.start_sum(torch.from_numpy(total))
        while not self._has_ended(work):
            watch.turn(self.endpoint.look())
            if watch.stalls_first():
                self.endpoint.probe()
            if closed := self.endpoint.closed():
                raise self._missing("connection closed by", closed)
            if watch.is_over():
                raise self._missing("nothing more from")

    def _is_joined(self) -> bool:
        try:
            return self._group.joined(LOOK_S)
        except AllReduceError as error:
            raise RoundTimeout(str(error), [(0, self.endpoint.chunks - 1)]) from None

    def _has_ended(self, work: Any) -> bool:
        """After waiting for it a little. Raises RoundTimeout if the sum has failed."""
        try:
            work.wait(timedelta(seconds=LOOK_S))
            return True
        except RuntimeError:
            if not work.is_completed():
                return False
        try:
            work.wait()  # it may have ended since
            return True
        except RuntimeError as error:
            closed = self.endpoint.closed()
            if closed:
                raise self._missing("connection closed by", closed) from None
            raise self._missing(f"Gloo failed ({one_sentence(error)}) waiting for") from None

    def _missing(self, what: str, closed: list[int] | None = None) -> RoundTimeout:
        watched = self.endpoint
        ranks = closed or watched.silent()
        who = f"worker{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
        return RoundTimeout(
            f"{what} {who if ranks else 'the workers, who all answer'} of job {self._part.job}; "
            f"{watched.chunks_done} of {watched.chunks} chunks came",
            [(watched.chunks_done, watched.chunks - 1)],
        )

    def serve(self, interrupt: int) -> None:
        """Between rounds: until the file descriptor `interrupt` can be read."""
        select.select([interrupt], [], [])

    @property
    def stats(self) -> dict[str, int]:
        """Counts of the session."""
        none = {"kernel_drops": 0, "unsent": 0, "network_errors": 0}
        return {**self.endpoint.counters, **none}

    def close(self) -> None:
        """End the session's connections. May be called twice."""
        self._group.close()


class Watch:
    """Calls the hooks of a round, and knows when nothing has moved for too long."""

    def __init__(self, hooks: Hooks, give_up_ns: int) -> None:
        now_ns = time.monotonic_ns()
        self._hooks, self._give_up_ns = hooks, give_up_ns
        self._moved, self._moved_ns, self._now_ns = 0, now_ns, now_ns
        self._report_ns = now_ns + PROGRESS_INTERVAL_NS // 2
        self._stalled = False

    def turn(self, moved: int) -> None:
        """So many bytes have moved by now."""
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
        """Whether it is now that nothing has moved for a while; once for each such while."""
        stalls = self._now_ns >= self._moved_ns + min(STALL_NS, self._give_up_ns // 4)
        first, self._stalled = stalls and not self._stalled, stalls
        return first

    def is_over(self) -> bool:
        """Nothing has moved for the time to give up."""
        return self._now_ns >= self._moved_ns + self._give_up_ns


def one_sentence(error: Exception) -> str:
    """Of what Gloo says, without the place in its source."""
    text = str(error).strip().partition("\n")[0]
    return text.rpartition("] ")[2].partition(". ")[0] if text.startswith("[") else text
