"""What workers may be asked to do in a round: one module a kind, hosts/workloads/ has what agents
know of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agglab.testbed.workloads.all_reduce import AllReduce, EmbeddingAllReduce, SparseAllReduce
from agglab.testbed.workloads.async_sgd import AsynchronousTraining
from agglab.testbed.workloads.base import Workload
from agglab.testbed.workloads.calls import CallsWorkload
from agglab.testbed.workloads.layers import LayersWorkload
from agglab.testbed.workloads.push_pull import PushesAndPulls
from agglab.testbed.workloads.sgd import SynchronousTraining
from agglab.testbed.workloads.torch import TrainingScript

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
"""By the value of `workload.kind`."""
OWN_KEYS = tuple(dict.fromkeys(key for each in KINDS.values() for key in each.keys))
"""Fields of a scenario's `workload` that not every kind has."""
FREE_KEYS = frozenset(key for each in KINDS.values() for key in each.free)
"""Of these the ones in which contenders may differ."""


def done_with(able: Collection[str]) -> tuple[str, ...]:
    """The kinds that a system does whose abilities name these."""
    return tuple(kind for kind, each in KINDS.items() if (each.made_of or kind) in able)


def having(key: str) -> tuple[str, ...]:
    """The kinds that have one of these keys."""
    return tuple(kind for kind, each in KINDS.items() if key in each.keys)
