"""Graphs of hosts, switches and links as passive data. Nothing here changes the machine.

`graph` defines the classes Host, Switch, Link and Topology. `rack` and `fabrics` have functions
that return a Topology. `distances` counts the links between nodes. `mn.py` offers these graphs to
Mininet, as a file for `mn --custom`.
"""

from agglab.topologies.fabrics import (
    custom,
    fat_tree,
    leaf_spine,
    ring_of_racks,
    three_tier,
    two_tier,
)
from agglab.topologies.graph import (
    Corrupt,
    Direction,
    Drop,
    DropList,
    Duplicate,
    GilbertElliott,
    Host,
    Impairment,
    Jitter,
    Link,
    LinkEnd,
    PeriodicDrop,
    Reorder,
    Switch,
    Topology,
    interface_name,
)
from agglab.topologies.rack import rack

__all__ = [
    "Corrupt",
    "Direction",
    "Drop",
    "DropList",
    "Duplicate",
    "GilbertElliott",
    "Host",
    "Impairment",
    "Jitter",
    "Link",
    "LinkEnd",
    "PeriodicDrop",
    "Reorder",
    "Switch",
    "Topology",
    "custom",
    "fat_tree",
    "interface_name",
    "leaf_spine",
    "rack",
    "ring_of_racks",
    "three_tier",
    "two_tier",
]
