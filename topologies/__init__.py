"""Graphs of hosts, switches and links as passive data; nothing here touches the machine.

`graph` holds the values, `rack` builds one; `mn.py` is a file for `mn --custom`.
"""

from topologies.graph import Direction, Drop, Host, Link, LinkEnd, Switch, Topology, interface_name
from topologies.rack import rack

__all__ = [
    "Direction",
    "Drop",
    "Host",
    "Link",
    "LinkEnd",
    "Switch",
    "Topology",
    "interface_name",
    "rack",
]
