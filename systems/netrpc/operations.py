"""Operations, which perform the calls that an application yields. Each kind of yielded value
(stubs.py) has a class of operations. An operation makes remote calls, and further ones as answers
come, until it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.errors import AllReduceError
from agglab.systems.netrpc.caller import Caller
from agglab.systems.netrpc.service import AGREE, RESERVED, Nothing
from agglab.systems.netrpc.stubs import Barrier, Pause, Reduce
from agglab.systems.netrpc.wire import Kind

GATHER_POSITION = 0
"""The position of gathers that belong to no stream."""
OPENING_METHOD = RESERVED[0]
PATIENCE_NS = 20_000_000
"""How much longer than usual a worker waits before it asks again whether all workers have come. The
other workers may have more to do before they come."""


class Operation(Protocol):
    """The interface of operations. `step` is called at the start and whenever answers have come. It
    returns whether the operation is done. The endpoint then sends `result` to the application."""

    result: Any

    def step(self) -> bool: ...


class OpeningOperation:
    """The opening of a round, in which all workers wait for each other and learn the epoch of the
    round. digests: a few numbers that are equal at workers that begin the same round. They are
    below 2^24, so that their sum over all workers does not overflow. `agreed`: whether the digests
    of all workers were equal."""

    def __init__(self, caller: Caller, digests: NDArray[np.int64], workers: int, lanes: int):
        self.result = None
        self.agreed = True
        self._caller, self._workers = caller, workers
        self._own = digests[:lanes]
        caller.wait_for_others()
        body = np.zeros(lanes, ">u4")
        body[: self._own.size] = self._own
        caller.forget_stream()
        caller.post(GATHER_POSITION, OPENING_METHOD, Kind.ARRAY, Kind.ARRAY, body.tobytes())

    def step(self) -> bool:
        caller = self._caller
        if caller.in_flight:
            return False
        caller.hold_ns = 0
        caller.epoch = int(caller.calls["epoch"][GATHER_POSITION])
        sums = np.frombuffer(caller.answer(GATHER_POSITION, Kind.ARRAY), ">u4")[: self._own.size]
        self.agreed = bool((sums == self._workers * self._own).all())
        return True


class ReduceOperation:
    """The reduction of an array over all workers, chunk by chunk. sums: room for the sums as
    integers."""

    def __init__(
        self, caller: Caller, wanted: Reduce, width: int, sums: NDArray[np.int32] | None
    ) -> None:
        self.result = None
        self._caller = caller
        caller.stream(wanted.method.number, AGREE, width, wanted.values, wanted.out, sums)

    def step(self) -> bool:
        return not self._caller.streaming


class BarrierOperation:
    """A barrier: every worker waits until all workers have called."""

    def __init__(self, caller: Caller, wanted: Barrier) -> None:
        self.result = None
        self._caller = caller
        caller.wait_for_others(PATIENCE_NS)
        caller.post(GATHER_POSITION, wanted.method, Nothing, Nothing, b"")

    def step(self) -> bool:
        if self._caller.in_flight:
            return False
        self._caller.hold_ns = 0
        return True


class PauseOperation:
    """A pause until `until_ns`. now_ns: a function that returns the time at which the endpoint was
    last called."""

    def __init__(self, now_ns: Callable[[], int], wanted: Pause) -> None:
        self.result = None
        self._now_ns = now_ns
        self.until_ns = now_ns() + wanted.pause_ns

    def step(self) -> bool:
        return self._now_ns() >= self.until_ns


class FailedOperation:
    """An operation that has failed, so that the round has no result. The endpoint raises the error
    at the next `poll`."""

    def __init__(self, error: AllReduceError) -> None:
        self.result = None
        self.error = error

    def step(self) -> bool:
        return False
