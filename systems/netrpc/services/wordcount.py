"""A service that counts words. For each word of a worker, the worker gets the number of its
occurrences at all workers together."""

from __future__ import annotations

from numpy.typing import NDArray

from agglab.systems.netrpc.service import (
    ALL,
    WORKERS,
    Application,
    CntFwd,
    Map,
    Service,
    method,
)
from agglab.systems.netrpc.stubs import Stubs


class WordCount(Service):
    add = method(Map, add_to=True)
    counted = method(forward=CntFwd(to=ALL, threshold=WORKERS))
    get = method(Map, get=True)

    def run(self, call: Stubs, inputs: NDArray, out: NDArray) -> Application:
        yield call.add(inputs["key"], inputs["value"])
        yield call.counted()
        out[:] = yield call.get(inputs["key"])
