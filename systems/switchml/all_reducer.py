"""One worker of a job for programs of a user's own: `from agglab.hosts import AllReducer`."""

from __future__ import annotations

from collections.abc import Callable

from agglab.hosts import wire
from agglab.hosts.all_reduce import Reducer
from agglab.hosts.driver import FIRST_TIMEOUT_MAX_S
from agglab.hosts.endpoint import Address
from agglab.hosts.part import Hooks
from agglab.hosts.recovery import Timing
from agglab.hosts.slots import Job
from agglab.systems.switchml.worker import Worker

SECONDS_MIN, SECONDS_MAX = 1e-9, 1e9
"""The range of times that an AllReducer takes."""


class AllReducer(Reducer):
    """One worker of a job. It sums arrays over all workers through the switch. Only one thread may
    use it at a time.

    All workers of a job must call `all_reduce` equally often, with arrays of the same number of
    elements and the same dtype. Otherwise all of them raise ShapeMismatch.

    bind: this worker's address and port, as the switch's table contains them. window: how many
    slots are used at once, by default all; all workers of a job must use the same number.
    first_tag: any number, if the switch has just been started. first_timeout_s: how long to wait
    for a result before any round trip has been measured. deadline_s: the deadline after which the
    switch sums without the workers that are missing, if its program was compiled with one
    (docs/partial-sums.md). `worker.presence` then says who is in the sum of each chunk.

    The constructor raises ValueError for numbers out of range, and AllReduceError if the address
    cannot be used or the packets exceed the interface's MTU.
    """

    def __init__(
        self,
        job: int,
        rank: int,
        workers: int,
        lanes: int,
        slots: int,
        bind: Address,
        aggregator: Address = wire.AGGREGATOR,
        window: int | None = None,
        first_tag: int = 1,
        give_up_s: float = 10.0,
        on_progress: Callable[[int], None] | None = None,
        on_batch: Callable[[], int | None] | None = None,
        first_timeout_s: float = FIRST_TIMEOUT_MAX_S,
        deadline_s: float | None = None,
    ) -> None:
        if not 0 <= rank < workers:
            raise ValueError(f"rank is {rank}; it must be 0 to {workers - 1}")
        deadline_ns = None if deadline_s is None else _nanoseconds("deadline_s", deadline_s)
        window = slots if window is None else window
        first_timeout_ns = _nanoseconds("first_timeout_s", first_timeout_s)
        self.rank = rank
        self.worker = Worker(
            Job(job, workers, lanes, slots, window, first_tag, deadline_ns=deadline_ns),
            Timing(
                initial_rto_ns=first_timeout_ns,
                max_rto_ns=max(first_timeout_ns, Timing.max_rto_ns),
                give_up_ns=_nanoseconds("give_up_s", give_up_s),
            ),
            aggregator,
        )
        super().__init__(self.worker, bind, Hooks(on_progress, on_batch))

    def _name(self) -> str:
        return f"job {self.worker.job.job}"


def _nanoseconds(name: str, seconds: float) -> int:
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise ValueError(f"{name} is {seconds:g}; it must be {SECONDS_MIN:g} to {SECONDS_MAX:g}")
    return round(seconds * 1e9)
