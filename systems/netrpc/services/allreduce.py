"""A service that sums the arrays of all workers and gives the sum to all of them."""

from __future__ import annotations

from numpy.typing import NDArray

from agglab.systems.netrpc.service import (
    ALL,
    SHADOW,
    WORKERS,
    Application,
    Array,
    CntFwd,
    Service,
    method,
)
from agglab.systems.netrpc.stubs import Stubs


class AllReduce(Service):
    reduce = method(
        Array, add_to=True, get=True, clear=SHADOW, forward=CntFwd(to=ALL, threshold=WORKERS)
    )

    def run(self, call: Stubs, inputs: NDArray, out: NDArray) -> Application:
        yield call.reduce(inputs, out)
