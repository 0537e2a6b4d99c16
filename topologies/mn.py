"""Agglab's graphs for plain Mininet, and a switch that needs no extra package:

    mn --custom topologies/mn.py --switch bridge --controller none --topo two_tier,racks=4,workers=4

Names, addresses and ports are the same as in a run of Agglab. All graphs except rack and two_tier
have loops and need `--switch bridge,stp=1`. For a rate, add `--link tc,bw=100`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from mininet.node import Switch
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


class KernelBridge(Switch):
    """A switch that is a bridge of Linux, made with `ip`. Mininet's own `lxbr` needs the package
    bridge-utils. stp: whether the bridges look for loops and block some links, for which they
    need ten seconds after the start."""

    def __init__(self, name: str, stp: bool = False, **words: object) -> None:
        super().__init__(name, **words)
        self._stp = stp

    def start(self, controllers: object) -> None:
        times = "stp_state 1 forward_delay 400 max_age 600" if self._stp else "forward_delay 0"
        self.cmd(f"ip link add {self.name} type bridge {times}")
        for interface in self.intfList():
            if interface.name != "lo":
                self.cmd(f"ip link set {interface.name} master {self.name} up")
        self.cmd(f"ip link set {self.name} up")

    def stop(self, deleteIntfs: bool = True) -> None:
        self.cmd(f"ip link del {self.name}")
        super().stop(deleteIntfs)


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
switches = {"bridge": KernelBridge}
