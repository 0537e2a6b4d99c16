"""The kinds of workload that workers may run in a round, with one module for each kind.
hosts/workloads/ has the agents' part of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agglab.testbed.scenario.workloads.all_reduce import (
    AllReduce,
    EmbeddingAllReduce,
    SparseAllReduce,
)
from agglab.testbed.scenario.workloads.async_sgd import AsynchronousTraining
from agglab.testbed.scenario.workloads.base import Workload
from agglab.testbed.scenario.workloads.calls import CallsWorkload
from agglab.testbed.scenario.workloads.layers import LayersWorkload
from agglab.testbed.scenario.workloads.push_pull import PushesAndPulls
from agglab.testbed.scenario.workloads.sgd import SynchronousTraining
from agglab.testbed.scenario.workloads.torch import TrainingScript

KINDS: Mapping[str, Workload] = {
    each.kind: each
    for each in (
        AllReduce(),
        SparseAllReduce(),
        EmbeddingAllReduce(),
        LayersWorkload(),
        SynchronousTraining(),
        PushesAndPulls(),
        CallsWorkload(),
        AsynchronousTraining(),
        TrainingScript(),
    )
}
"""The kinds of workload, by the value of `workload.kind`."""
OWN_KEYS = tuple(dict.fromkeys(key for each in KINDS.values() for key in each.keys))
"""The fields of a scenario's `workload` that only some kinds have."""
FREE_KEYS = frozenset(key for each in KINDS.values() for key in each.free)
"""Those of these fields in which contenders may differ."""


def done_with(able: Collection[str]) -> tuple[str, ...]:
    """Returns the kinds that a system with these abilities supports."""
    return tuple(kind for kind, each in KINDS.items() if (each.made_of or kind) in able)


def having(key: str) -> tuple[str, ...]:
    """Returns the kinds that have this key."""
    return tuple(kind for kind, each in KINDS.items() if key in each.keys)
