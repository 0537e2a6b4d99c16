"""Graphs of hosts, switches and links as passive data; nothing here touches the machine.

`graph` holds the values, `rack` builds one; `mn.py` is a file for `mn --custom`.
"""

from topologies.graph import (
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
from topologies.rack import rack

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
    "interface_name",
    "rack",
]
