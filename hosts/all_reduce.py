"""The public call of a worker, `AllReducer.all_reduce(array)`. This module imports only
p4native.common and other modules of `hosts`."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agglab.hosts import wire
from agglab.hosts.agreement import Agreeing, Agreement
from agglab.hosts.bfloat16 import name_of
from agglab.hosts.driver import FIRST_TIMEOUT_MAX_S, Link
from agglab.hosts.endpoint import Address, Endpoint
from agglab.hosts.errors import AllReduceError
from agglab.hosts.part import NO_HOOKS, Hooks
from agglab.hosts.round_driver import RoundDriver
from agglab.hosts.worker import Job, Timing, Worker
from p4native.common.contexts import Closing

DTYPES = (np.dtype(np.int32), np.dtype(np.float32))
"""The dtypes that every system sums. An endpoint that sums other dtypes has an attribute
`dtypes`."""

SECONDS_MIN, SECONDS_MAX = 1e-9, 1e9
"""The range of times that an AllReducer takes."""


class Reducer(Closing):
    """An endpoint together with its socket, which performs all-reduces. Only one thread may use it
    at a time. The constructor raises AllReduceError if an address cannot be used, or if the packets
    exceed the interface's MTU."""

    def __init__(self, endpoint: Endpoint, bind: Address, hooks: Hooks = NO_HOOKS) -> None:
        self.endpoint = endpoint
        self._link = Link(endpoint, bind)
        self._driver = RoundDriver(endpoint, self._link, hooks)
        self._hooks = hooks
        self._broken = False

    def all_reduce(
        self,
        array: ArrayLike,
        out: NDArray | None = None,
        sums: NDArray[np.int32] | None = None,
    ) -> NDArray:
        """Returns the sum of `array` over all workers of the job, with the same shape and dtype.

        int32 is summed modulo 2^32. A float32 result is within `hosts.quantise.error_bound` of the
        exact sum. float16 and bfloat16 (hosts.bfloat16.BFLOAT16) are summed exactly and then
        rounded, by systems that can do this (docs/numbers.md). `out` takes the result and may be
        `array`. `sums` takes the integers that the switch returned; it must be flat, contiguous and
        aligned.

        Raises TypeError for other dtypes, and if `out` or `sums` is not a NumPy array. Raises
        ValueError if `out` or `sums` does not fit. Raises NotFinite for Inf, NaN and sums beyond
        float32, ShapeMismatch if the workers do not reduce alike, and RoundTimeout if results fail
        to come. After NotFinite the next call works; after any other AllReduceError no call does.
        """
        array = np.asarray(array)
        _check_dtype(array, getattr(self.endpoint, "dtypes", DTYPES))
        _check_out(array, out)
        _check_sums(array, out, sums)
        values = np.require(array, requirements=["C", "ALIGNED"]).reshape(-1)
        total = _flat_result(values, out)
        if np.may_share_memory(values, total) and values.ctypes.data != total.ctypes.data:
            values = values.copy()
        self.run(values, total, sums)
        if out is None:
            return total.reshape(array.shape)
        if not np.may_share_memory(out, total):
            out[...] = total.reshape(out.shape)
        return out

    def run(self, values: NDArray, total: NDArray, sums: NDArray[np.int32] | None) -> None:
        """Performs one round of the endpoint with these arrays, as described at Endpoint.begin.
        Raises what `all_reduce` raises."""
        if self._link.closed:
            raise AllReduceError(f"{self._name()}: the reducer is closed")
        if self._broken:
            raise AllReduceError(
                f"{self._name()}: a round before this one did not end, so that the workers are out "
                "of step; start the job again on a fresh switch"
            )
        self._broken = True
        self.endpoint.begin(time.monotonic_ns(), values, total, sums)
        self._driver.run()
        self._broken = False
        self.endpoint.finish()

    def agree_on(self, agreement: Agreement) -> None:
        """Lets the workers compare this in the rounds that begin from now on, if their endpoints
        compare anything. If they disagree, all of them raise ShapeMismatch."""
        if isinstance(self.endpoint, Agreeing):
            self.endpoint.agreement = agreement

    def _name(self) -> str:
        return type(self).__name__

    def serve(self, interrupt: int) -> None:
        """Answers packets of other agents between rounds, until the file descriptor `interrupt`
        becomes readable."""
        waiting = select.poll()
        waiting.register(interrupt, select.POLLIN)
        if self.endpoint.listens:
            waiting.register(self._link.socket, select.POLLIN)
        while True:
            now_ns = time.monotonic_ns()
            if self.endpoint.listens:
                self._link.send(self.endpoint.poll(now_ns))
                if self._hooks.on_look:
                    self._hooks.on_look()
            left_ms = (self.endpoint.deadline_ns - now_ns) / 1e6 if self.endpoint.listens else None
            ready = waiting.poll(None if left_ms is None or left_ms > 1e9 else max(0.0, left_ms))
            if any(fd == interrupt for fd, _ in ready):
                return
            if ready:
                inbox = self._link.receive(0, 0)
                self.endpoint.on_datagrams(time.monotonic_ns(), inbox)

    @property
    def stats(self) -> dict[str, int]:
        """The counts since the reducer was made: the endpoint's counters, `kernel_drops` (datagrams
        that found the socket's buffer full), `unsent` (datagrams that the kernel did not accept for
        sending) and `network_errors` (errors that ICMP messages reported, whether or not these were
        forged)."""
        link = self._link
        return dict(self.endpoint.counters) | {
            "kernel_drops": link.kernel_drops,
            "unsent": link.unsent,
            "network_errors": link.network_errors,
        }

    def close(self) -> None:
        """Releases the socket. May be called twice."""
        self._link.close()


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


def _check_dtype(array: NDArray, dtypes: Sequence[np.dtype]) -> None:
    if array.dtype not in dtypes:
        raise TypeError(
            f"cannot reduce dtype {name_of(array.dtype)}: convert to "
            f"{' or '.join(map(name_of, dtypes))} "
            "(native byte order)"
        )


def _check_is_array(name: str, given: object) -> None:
    if not isinstance(given, np.ndarray):
        raise TypeError(f"{name} is a {type(given).__name__}; it must be a NumPy array")


def _check_out(array: NDArray, out: NDArray | None) -> None:
    if out is None:
        return
    _check_is_array("out", out)
    if out.shape != array.shape or out.dtype != array.dtype:
        raise ValueError(
            f"out is {out.dtype} {out.shape}; the result is {array.dtype} {array.shape}"
        )
    if not out.flags.writeable:
        raise ValueError("out is read-only")


def _check_sums(array: NDArray, out: NDArray | None, sums: NDArray[np.int32] | None) -> None:
    if sums is None:
        return
    _check_is_array("sums", sums)
    if out is not None and np.may_share_memory(out, sums):
        raise ValueError("sums and out share memory: each would overwrite the other")
    if sums.dtype != np.int32 or sums.shape != (array.size,) or not sums.flags.carray:
        raise ValueError(
            f"sums must be flat, contiguous, aligned, writable int32 of {array.size} elements"
        )


def _flat_result(values: NDArray, out: NDArray | None) -> NDArray:
    """Returns flat, contiguous, aligned memory for the result. This is the memory of `out` if `out`
    is contiguous and aligned."""
    if out is not None and out.flags.c_contiguous and out.flags.aligned:
        return np.asarray(out).reshape(-1)  # a np.matrix has two dimensions whatever is done to it
    return np.empty_like(values)
