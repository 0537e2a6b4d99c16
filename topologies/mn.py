"""Agglab's graphs for plain Mininet: `mn --custom topologies/mn.py --topo
two_tier,racks=4,workers=4`.

Names, addresses and ports are the same as in a run of Agglab. Without Open vSwitch, add `--switch
lxbr --controller none`. All graphs except rack and two_tier have loops and need `--switch
lxbr,stp=1`. For a rate, add `--link tc,bw=100`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
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

from agglab.topologies import Topology  # noqa: E402
from agglab.topologies.graph import PREFIX_LENGTH  # noqa: E402
from agglab.topologies.kinds import KINDS  # noqa: E402


def to_mininet(topology: Topology) -> Topo:
    """Returns a Mininet Topo with the same nodes, addresses and ports. Rates and losses are left
    out."""
    topo = Topo()
    for host in topology.hosts:
        topo.addHost(host.name, ip=f"{host.ip}/{PREFIX_LENGTH}", mac=host.mac)
    for switch in topology.switches:
        topo.addSwitch(switch.name)
    for link in topology.links:
        topo.addLink(link.a.node, link.b.node, port1=link.a.port, port2=link.b.port)
    return topo


def named(kind: str) -> Callable[..., Topo]:
    """Returns a function that makes the Mininet Topo of a kind of graph, for `--topo KIND,...`."""
    return lambda *positional, **words: to_mininet(KINDS[kind](*positional, **words))


topos = {kind: named(kind) for kind in KINDS}
