"""Of hosts that owe as much, the first one is to blame, and `survivors` leaves it out. Which one
that is must not depend on the order of a set of names, which differs from process to process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from agglab.systems.netrpc import diagnosis as netrpc
from agglab.systems.pooling import diagnosis as pooling
from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.systems.base import MissingChunks
from agglab.testbed.systems.summing import diagnosis as summing
from agglab.testbed.systems.summing.plan import PlacedJob, plan
from agglab.topologies import rack

HOSTS = tuple(f"h{n}" for n in range(1, 17))
TAG = 5
TREE = plan(rack(len(HOSTS)), [PlacedJob(1, HOSTS, 0, 4)]).trees[1]
JOB: Any = SimpleNamespace(
    hosts=HOSTS, members=range(len(HOSTS)), index=0, job=SimpleNamespace(number=1, work=None)
)
Waiting = Mapping[str, Sequence[tuple[int, ...]]]


class Cells:
    """Registers whose cells all have the same value."""

    def __init__(self, **values: int) -> None:
        self._values = values

    def registers(self, switch: str, register: str, indices: Sequence[int]) -> list[int]:
        return [self._values[register]] * len(indices)

    def statistics(self) -> NetworkStatistics:
        return NetworkStatistics((), (), {})


def of_summing(waiting: Waiting) -> Mapping[str, MissingChunks]:
    return summing.diagnose(Cells(tags=TAG, contributors=0xFFFF), TREE, 0, waiting)


def of_netrpc(waiting: Waiting) -> Mapping[str, MissingChunks]:
    return netrpc.diagnose(Cells(sequences=TAG), "s1", JOB, waiting)


def of_pooling(waiting: Waiting) -> Mapping[str, MissingChunks]:
    return pooling.diagnose(Cells(owners=0, contributors=0), TREE, JOB, waiting, [(TAG,)], "h1")


def of_pooling_server(waiting: Waiting) -> Mapping[str, MissingChunks]:
    lacks_all = (TAG, *(HOSTS.index(host) for host in waiting))
    return pooling.diagnose(Cells(owners=0, contributors=0), TREE, JOB, waiting, [lacks_all], "h1")


@pytest.mark.parametrize("diagnose", [of_summing, of_netrpc, of_pooling, of_pooling_server])
def test_hosts_that_owe_as_much_are_in_the_order_of_the_job(
    diagnose: Callable[[Waiting], Mapping[str, MissingChunks]],
) -> None:
    assert list(diagnose({host: [(10, 0, TAG)] for host in HOSTS})) == list(HOSTS)
