"""Our graphs for plain Mininet: `mn --custom topologies/mn.py --topo rack,4`.

Names, addresses and ports are those of a run. Without Open vSwitch use
`--switch lxbr --controller none`, and `--link tc,bw=100` for a rate.
"""

import inspect
import sys
from pathlib import Path

from mininet.topo import Topo

# `mn` executes this file's text: there is no __file__, and the repository is not in the path.
_FILE = inspect.currentframe().f_code.co_filename  # type: ignore[union-attr]
_ROOT = str(Path(_FILE).resolve().parent.parent)
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from topologies import Topology, rack  # noqa: E402
from topologies.graph import PREFIX_LENGTH  # noqa: E402


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


def rack_topo(workers: int = 4) -> Topo:
    """`--topo rack,N`."""
    return to_mininet(rack(workers))


topos = {"rack": rack_topo}
