"""What switches lost at their ports, as counts of directions."""

from __future__ import annotations

from agglab.testbed.base.traffic_counters import SwitchStatistics
from agglab.testbed.real.impaired import Counts
from agglab.testbed.real.link_counters import Sent, port_counts, sent_by_switches
from agglab.testbed.real.rules import PortDrop
from agglab.topologies import rack

LOST_COMING = {"seen": 50, "dropped": 3, "dropped_bytes": 300, "numbers": [4, 7, 9]}
LOST_GOING = {"seen": 60, "dropped": 5, "dropped_bytes": 700, "numbers": [1, 2, 3, 5, 8]}


def switch(ports: object) -> SwitchStatistics:
    return SwitchStatistics("s1", 0.0, 0, {"ports": ports})


def test_only_frames_that_a_switch_drops_before_it_sends_them_were_not_sent() -> None:
    drops = {
        "h1->s1": PortDrop("s1", 0, False, 1, 2),
        "s1->h1": PortDrop("s1", 0, True, 1, 2),
        "s1->h2": PortDrop("s1", 1, True, 1, 2),
    }
    coming, going = (drops[name].statistics for name in ("h1->s1", "s1->h1"))
    assert coming != going
    told = switch({"0": {coming: LOST_COMING, going: LOST_GOING}})
    assert port_counts(drops, [told]) == {
        "h1->s1": Counts(50, 3, numbers=(4, 7, 9)),
        "s1->h1": Counts(60, 5, numbers=(1, 2, 3, 5, 8), unsent=5, unsent_bytes=700),
    }


def test_what_switches_sent_is_of_their_own_port_and_of_buffered_links_only() -> None:
    graph = rack(3)
    first, second = graph.links[0], graph.links[1]
    ports = {
        str(sender.port): {"tx_packets": 10 + sender.port, "tx_bytes": 1000 + sender.port}
        for link in graph.links
        for _, sender, _, _ in link.directions()
        if sender.node == "s1"
    }
    (name, port) = next(
        (name, sender.port) for name, sender, _, _ in second.directions() if sender.node == "s1"
    )
    found = sent_by_switches(graph, {second.name}, [switch(ports)])
    assert found == {name: Sent(10 + port, 1000 + port)}
    assert first.name != second.name
