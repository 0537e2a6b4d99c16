"""A service of critical sections. The worker that holds a lock reads the lock's counter and then
adds one to it."""

from __future__ import annotations

from numpy.typing import NDArray

from agglab.systems.netrpc.service import (
    CALLER,
    COUNTER,
    Application,
    CntFwd,
    Map,
    Service,
    method,
)
from agglab.systems.netrpc.stubs import Stubs

WAIT_MIN_S, WAIT_MAX_S = 100e-6, 0.05


class Lock(Service):
    acquire = method(Map, forward=CntFwd(to=CALLER, threshold=1))
    release = method(Map, clear=COUNTER)
    read = method(Map, get=True)
    add = method(Map, add_to=True)

    def run(self, call: Stubs, inputs: NDArray, out: NDArray) -> Application:
        for section, lock in enumerate(inputs.tolist()):
            wait_s = WAIT_MIN_S
            while not (yield call.acquire([lock]))[0]:
                yield call.pause(wait_s)
                wait_s = min(2 * wait_s, WAIT_MAX_S)
            out[section] = (yield call.read([lock]))[0]
            yield call.add([lock], [1])
            yield call.release([lock])
