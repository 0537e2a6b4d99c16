"""Replaces Mininet's classes by ones that only hold data. The kernel's part of the work is done by
the network, in batches.

This module must be imported instead of `mininet`. It keeps Mininet from changing the machine's
settings and from printing.
"""

from __future__ import annotations

# isort: off
from agglab.testbed.real import distutils_stand_in  # noqa: F401, before Mininet

# isort: on
from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Node, Switch

from agglab.testbed.real.links import interface_mac
from agglab.topologies import Link as TopologyLink
from agglab.topologies import Topology
from agglab.topologies.graph import PREFIX_LENGTH

setLogLevel("error")
# Mininet.init would raise limits of the whole machine (sysctl).
Mininet.inited = True


class BatchedIntf(Intf):
    """An interface that the network configures; it only stores its names and addresses."""

    def config(self, **parameters: object) -> dict[str, object]:
        return {}


class BatchedLink(Link):
    """A cable whose veth pair the network creates."""

    @classmethod
    def makeIntfPair(cls, *names: object, **parameters: object) -> None:
        return None


class P4Switch(Switch):
    """A switch in a separate namespace. The network starts its program."""

    def start(self, controllers: object) -> None:
        return None


def build_mininet(topology: Topology) -> Mininet:
    """Returns a Mininet object with all nodes, each with a shell in its own namespace. The links
    exist only in Mininet's data."""
    net = Mininet(topo=None, build=False, host=Host, switch=P4Switch, controller=None)
    try:
        for host in topology.hosts:
            net.addHost(host.name, ip=f"{host.ip}/{PREFIX_LENGTH}", mac=host.mac)
        for switch in topology.switches:
            net.addSwitch(switch.name, inNamespace=True, dpid=f"{switch.device_id:x}")
    except BaseException:
        stop_nodes(net)
        raise
    for link in topology.links:
        _add_link(net, topology, link)
    for host in topology.hosts:
        interface = net[host.name].defaultIntf()
        interface.ip, interface.prefixLen = host.ip, PREFIX_LENGTH
    net.built = True
    return net


def _add_link(net: Mininet, topology: Topology, link: TopologyLink) -> None:
    a, b = link.a, link.b
    net.addLink(
        a.node,
        b.node,
        port1=a.port,
        port2=b.port,
        addr1=interface_mac(topology, a),
        addr2=interface_mac(topology, b),
        cls=BatchedLink,
        intf=BatchedIntf,
    )


def stop_nodes(net: Mininet) -> None:
    """Ends every node's shell, which removes the node's namespace and interfaces."""
    nodes: list[Node] = [*net.hosts, *net.switches]
    for node in nodes:
        node.terminate()
