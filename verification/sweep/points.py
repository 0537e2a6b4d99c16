"""The points of a sweep: each is one scenario, which is run with many seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from agglab.testbed import systems

TOPOLOGIES = {
    "rack": "topology={kind: rack, workers: 4, servers: 4}",
    "two_tier": "topology={kind: two_tier, racks: 2, workers: 2, servers: 2}",
}
"""Four workers each, and four hosts for servers."""
LOSSES = ("0%", "0.05%", "0.1%", "0.2%", "0.5%", "1%", "2%")
COMMON = ("backend=virtual", "links.rate=100mbit", "switch.lanes=64")
SIZES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "small": {
        "allreduce": ("workload.elements=150", "workload.rounds=8"),
        "push_pull": ("workload.elements=150", "workload.rounds=8", "workload.vocabulary=200"),
        "calls": ("workload.application=lock", "workload.elements=10"),
        "async_sgd": ("workload.features=32", "workload.updates=12", "workload.compute=1ms"),
    },
    "large": {
        "allreduce": ("workload.elements=20_000", "workload.rounds=3"),
        "push_pull": ("workload.elements=8_000", "workload.rounds=3"),
        "calls": ("workload.application=wordcount", "workload.elements=1_000"),
        "async_sgd": ("workload.features=256", "workload.updates=12", "workload.compute=5ms"),
    },
}
"""The settings by size and kind of workload. Small rounds have so few packets that most losses are
at the end of a round or just before a round. Large rounds have several windows."""


@dataclass(frozen=True)
class Point:
    """A scenario without its seed. variant: the system with what distinguishes its variant.
    settings: all keys, in the form of `--set`."""

    variant: str
    kind: str
    topology: str
    size: str
    loss: str
    settings: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.variant}, {self.kind}, {self.topology}, {self.size}, {self.loss} loss"


def points(
    chosen: Sequence[str],
    topologies: Sequence[str],
    sizes: Sequence[str],
    losses: Sequence[str],
    more: Sequence[str],
) -> Iterator[Point]:
    """Yields the points of all these systems' variants. more: settings that every point has in
    addition, and that take precedence."""
    for name, topology, size in product(chosen, topologies, sizes):
        for (variant, kind), own in _variants(name).items():
            base = (*COMMON, TOPOLOGIES[topology], f"workload.kind={kind}", *SIZES[size][kind])
            for loss in losses:
                settings = (*base, *own, f"links.loss={loss}", *more)
                yield Point(variant, kind, topology, size, loss, settings)


def _variants(name: str) -> dict[tuple[str, str], Sequence[str]]:
    """Returns the settings of each variant of a system with each kind of workload."""
    system = systems.find(name)
    kinds = [kind for kind in SIZES["small"] if kind in system.abilities.workloads]
    return {
        (f"{name}, {variant}" if variant else name, kind): (f"system={name}", *own)
        for variant, own in system.variants.items()
        for kind in kinds
    }
