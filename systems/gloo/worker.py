"""One worker that sums by Gloo, over TCP connections that Gloo makes (README.md).

Gloo's own threads move the packets. This module starts a sum, watches the connections until the sum
has ended, and writes the error message if it fails.
"""

from __future__ import annotations

import contextlib
import select
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.agreement import Agreement
from agglab.hosts.errors import AllReduceError, RoundTimeout
from agglab.hosts.part import Hooks, Part
from agglab.systems.gloo.group import Group
from agglab.systems.gloo.watching import Watch, Watched, one_sentence

JOIN_S = 3.5
"""How long a session waits at its beginning for all members. Two SYNs may be lost, because the
third is sent 3 s after the first. A worker that was started again waits in vain, because the
members of its session have gone."""
LOOK_S = 0.02
"""The time between two looks at the connections within a round."""


class GlooReducer:
    """The reducer of one worker in one session. Only one thread may use it at a time."""

    def __init__(self, part: Part, hooks: Hooks) -> None:
        self._part, self._hooks = part, hooks
        self._give_up_ns = round(part.give_up_s * shared.NS_PER_S)
        self._group = Group(part)
        self._broken = False
        self.endpoint = Watched(self._group, part.workers, part.rank, part.settings["chunk_bytes"])
        with contextlib.suppress(AllReduceError):  # the first round says it, which a job survives
            self._group.joined(JOIN_S)

    def all_reduce(self, array: NDArray, out: NDArray, sums: NDArray | None = None) -> NDArray:
        """Performs one round with these arrays, as `all_reduce` of all_reduce.Reducer does. The
        arrays must be flat and contiguous."""
        self.run(array, out, sums)
        return out

    def agree_on(self, agreement: Agreement) -> None:
        """Does nothing: Gloo compares nothing. The testbed compares what agents have recorded."""

    def run(self, values: NDArray, total: NDArray, sums: NDArray | None) -> None:
        """Performs one round: sums `values` over all workers into `total`. Both are flat, of int32
        or float32. `sums` is not changed. Raises NotFinite, and RoundTimeout if a worker is
        missing. After RoundTimeout the session cannot be used any more."""
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
        """Waits for a moment and returns whether the sum is complete. Raises RoundTimeout if it has
        failed."""
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
        """Waits between rounds, until the file descriptor `interrupt` can be read."""
        select.select([interrupt], [], [])

    @property
    def stats(self) -> dict[str, int]:
        """The counts since the session was opened."""
        none = {"kernel_drops": 0, "unsent": 0, "network_errors": 0}
        return {**self.endpoint.counters, **none}

    def close(self) -> None:
        """Ends the session's connections. May be called twice."""
        self._group.close()
