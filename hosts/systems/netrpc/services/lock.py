"""Critical sections: who holds a lock reads its counter, then raises it by one."""

from __future__ import annotations

from numpy.typing import NDArray

from agglab.hosts.systems.netrpc.service import (
    CALLER,
    COUNTER,
    Application,
    CntFwd,
    Map,
    Service,
    method,
)
from agglab.hosts.systems.netrpc.stubs import Stubs


class Lock(Service):
    acquire = method(Map, forward=CntFwd(to=CALLER, threshold=1))
    release = method(Map, clear=COUNTER)
    read = method(Map, get=True)
    add = method(Map, add_to=True)

    def run(self, call: Stubs, inputs: NDArray, out: NDArray) -> Application:
        for section, lock in enumerate(inputs.tolist()):
            while not (yield call.acquire([lock]))[0]:
                pass
            out[section] = (yield call.read([lock]))[0]
            yield call.add([lock], [1])
            yield call.release([lock])
