"""A ring all-reduce over switches whose only table, `macs`, says where each host is."""

from collections.abc import Mapping, Sequence

from agglab.systems.ring.system import Ring
from agglab.testbed.systems.base import ActiveJob, Counter
from agglab.testbed.systems.plan import Entries, TableEntry
from agglab.testbed.systems.plan.entries import mac_number
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.topologies import Topology


class Forwarding(Ring):
    name = "tiny-forwarding"
    summary = "a ring all-reduce over a program with one table"
    counters: Mapping[str, Counter] = {}
    attack_kinds = {}  # noqa: RUF012

    def tables(self, graph: Topology, jobs: Sequence[ActiveJob]) -> Mapping[str, Entries]:
        wiring = wiring_of(graph)
        return {
            switch: Entries(
                tuple(
                    TableEntry("macs", {"dst": mac_number(host.mac)}, "forward", {"port": port})
                    for host in graph.hosts
                    if (port := wiring.port_to_host(switch, host.name)) is not None
                ),
                {},
            )
            for switch in wiring.switches
        }
