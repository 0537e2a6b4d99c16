"""Our graphs for plain Mininet: `mn --custom topologies/mn.py --topo two_tier,racks=4,workers=4`.

Names, addresses and ports are those of a run. Without Open vSwitch use
`--switch lxbr --controller none` (`--switch lxbr,stp=1` for graphs with loops: all but rack and
two_tier), and `--link tc,bw=100` for a rate.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType

from mininet.topo import Topo

# `mn` executes this file's text: there is no __file__, and the repository is not in the path.
_FILE = inspect.currentframe().f_code.co_filename  # type: ignore[union-attr]
_ROOT = str(Path(_FILE).resolve().parent.parent)
if "agglab" not in sys.modules:
    _agglab = ModuleType("agglab")  # the system's Python, which runs `mn`, has no agglab installed
    _agglab.__path__ = [_ROOT]
    sys.modules["agglab"] = _agglab

from agglab.topologies import (  # noqa: E402
    Topology,
    fat_tree,
    leaf_spine,
    rack,
    ring_of_racks,
    two_tier,
)
from agglab.topologies.graph import PREFIX_LENGTH  # noqa: E402


def to_mininet(topology: Topology) -> Topo:
    """The same nodes, addresses and ports as a Mininet Topo; rates and losses are left out."""
    topo = Topo()
    for host in topology.hosts:
        topo.addHost(host.name, ip=f"{host.ip}/{PREFIX_LENGTH}", mac=host.mac)
    for switch in topology.switches:
        topo.addSwitch(switch.name)
    for link in topology.links:
        topo.addLink(link.a.node, link.b.node, port1=link.a.port, port2=link.b.port)
    return topo


def rack_topo(workers: int = 4, servers: int = 0) -> Topo:
    """`--topo rack,N`, and `servers=M` as in all of them."""
    return to_mininet(rack(workers, servers=servers))


def two_tier_topo(racks: int = 2, workers: int = 4, servers: int = 0) -> Topo:
    """`--topo two_tier,racks=R,workers=N`."""
    return to_mininet(two_tier(racks, workers, servers))


def leaf_spine_topo(racks: int = 2, spines: int = 2, workers: int = 4, servers: int = 0) -> Topo:
    """`--topo leaf_spine,racks=R,spines=S,workers=N`."""
    return to_mininet(leaf_spine(racks, spines, workers, servers))


def fat_tree_topo(k: int = 4, workers: int | None = None, servers: int = 0) -> Topo:
    """`--topo fat_tree,k=K`, and `workers=N` at each edge switch."""
    return to_mininet(fat_tree(k, workers, servers))


def ring_of_racks_topo(racks: int = 3, workers: int = 4, servers: int = 0) -> Topo:
    """`--topo ring_of_racks,racks=R,workers=N`."""
    return to_mininet(ring_of_racks(racks, workers, servers))


topos = {
    "rack": rack_topo,
    "two_tier": two_tier_topo,
    "leaf_spine": leaf_spine_topo,
    "fat_tree": fat_tree_topo,
    "ring_of_racks": ring_of_racks_topo,
}
