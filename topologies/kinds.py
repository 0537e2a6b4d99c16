"""The kinds of graph, by the names that scenarios (`topology.kind`) and `mn` use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from agglab.topologies.fabrics import fat_tree, leaf_spine, ring_of_racks, three_tier, two_tier
from agglab.topologies.graph import Topology
from agglab.topologies.rack import rack

KINDS: Mapping[str, Callable[..., Topology]] = {
    "rack": lambda workers=4, servers=0: rack(workers, servers=servers),
    "two_tier": lambda racks=2, workers=4, servers=0: two_tier(racks, workers, servers),
    "three_tier": lambda pods=2, racks=2, workers=4, servers=0: three_tier(
        pods, racks, workers, servers
    ),
    "leaf_spine": lambda racks=2, spines=2, workers=4, servers=0: leaf_spine(
        racks, spines, workers, servers
    ),
    "fat_tree": lambda k=4, workers=None, servers=0: fat_tree(k, workers, servers),
    "ring_of_racks": lambda racks=3, workers=4, servers=0: ring_of_racks(racks, workers, servers),
}
"""The functions that build graphs, by name. Their parameters are the keys in a scenario, and the
parameters' defaults are the keys' defaults."""


def parameters(kind: str) -> dict[str, Any]:
    """Returns the parameters of a kind of graph: their names, each with its default. kind: one of
    KINDS."""
    found = inspect.signature(KINDS[kind]).parameters.values()
    return {parameter.name: parameter.default for parameter in found}
