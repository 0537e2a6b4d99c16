"""A service that counts words. It tells each worker how often all workers together have each of its
words."""

from __future__ import annotations

from numpy.typing import NDArray

from agglab.hosts.systems.netrpc.service import (
    ALL,
    WORKERS,
    Application,
    CntFwd,
    Map,
    Service,
    method,
)
from agglab.hosts.systems.netrpc.stubs import Stubs


class WordCount(Service):
    add = method(Map, add_to=True)
    counted = method(forward=CntFwd(to=ALL, threshold=WORKERS))
    get = method(Map, get=True)

    def run(self, call: Stubs, inputs: NDArray, out: NDArray) -> Application:
        yield call.add(inputs["key"], inputs["value"])
        yield call.counted()
        out[:] = yield call.get(inputs["key"])
