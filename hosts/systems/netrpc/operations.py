"""How calls are performed: an operation for each kind of value that an application yields
(stubs.py). It posts calls, and more of them as answers come, until it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.errors import AllReduceError
from agglab.hosts.systems.netrpc.caller import Caller
from agglab.hosts.systems.netrpc.service import AGREE, RESERVED, Nothing
from agglab.hosts.systems.netrpc.stubs import Barrier, Pause, Reduce
from agglab.hosts.systems.netrpc.wire import Kind

GATHER_POSITION = 0
"""The position of gathers that are no stream's."""
OPENING_METHOD = RESERVED[0]
PATIENCE_NS = 20_000_000
"""How much longer than usual a worker waits before it asks again whether all have come, since the
others may have more to do before."""


class Operation(Protocol):
    """`step` is called once at the start and whenever answers have come, and returns whether the
    operation is done; `result` is then what the application is sent."""

    result: Any

    def step(self) -> bool: ...


class OpeningOperation:
    """All workers meet, and learn of which epoch the round is. digests: a few numbers that are the
    same for all workers who do the same, below 2^24, so that the sum of all does not overflow:
    `agreed` tells whether they are."""

    def __init__(self, caller: Caller, digests: NDArray[np.int64], workers: int, lanes: int):
        self.result = None
        self.agreed = True
        self._caller, self._workers = caller, workers
        self._own = digests[:lanes]
        body = np.zeros(lanes, ">u4")
        body[: self._own.size] = self._own
        caller.forget_stream()
        caller.post(GATHER_POSITION, OPENING_METHOD, Kind.ARRAY, Kind.ARRAY, body.tobytes())

    def step(self) -> bool:
        caller = self._caller
        if caller.in_flight:
            return False
        caller.epoch = int(caller.calls["epoch"][GATHER_POSITION])
        sums = np.frombuffer(caller.answer(GATHER_POSITION, Kind.ARRAY), ">u4")[: self._own.size]
        self.agreed = bool((sums == self._workers * self._own).all())
        return True


class ReduceOperation:
    """A stream. sums: takes the integers that travelled."""

    def __init__(
        self, caller: Caller, wanted: Reduce, width: int, sums: NDArray[np.int32] | None
    ) -> None:
        self.result = None
        self._caller = caller
        caller.stream(wanted.method.number, AGREE, width, wanted.values, wanted.out, sums)

    def step(self) -> bool:
        return not self._caller.streaming


class BarrierOperation:
    """Everybody waits for the last."""

    def __init__(self, caller: Caller, wanted: Barrier) -> None:
        self.result = None
        self._caller = caller
        caller.hold_ns = PATIENCE_NS
        caller.post(GATHER_POSITION, wanted.method, Nothing, Nothing, b"")

    def step(self) -> bool:
        if self._caller.in_flight:
            return False
        self._caller.hold_ns = 0
        return True


class PauseOperation:
    """now_ns: tells the time of the endpoint's latest call; until_ns: when the pause ends."""

    def __init__(self, now_ns: Callable[[], int], wanted: Pause) -> None:
        self.result = None
        self._now_ns = now_ns
        self.until_ns = now_ns() + wanted.pause_ns

    def step(self) -> bool:
        return self._now_ns() >= self.until_ns


class FailedOperation:
    """The round has no result: the endpoint raises the error when it is polled."""

    def __init__(self, error: AllReduceError) -> None:
        self.result = None
        self.error = error

    def step(self) -> bool:
        return False
