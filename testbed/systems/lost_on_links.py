"""How many packets links have lost, as evidence for who is to blame if a round does not end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agglab.testbed.base.traffic_counters import NetworkStatistics


@dataclass(frozen=True)
class LostOnLinks:
    """The packets that each direction of a link has lost at most, and those that each switch
    received and could not process."""

    directions: Mapping[str, int]
    switches: Mapping[str, int]

    def knows(self, node: str, switch: str) -> bool:
        """Returns whether there is a link between a node and a switch."""
        return f"{node}->{switch}" in self.directions

    def upwards(self, node: str, switch: str) -> int:
        """Returns how many packets from a node to a switch have been lost at most."""
        return self.directions.get(f"{node}->{switch}", 0) + self.switches.get(switch, 0)

    def both_ways(self, node: str, switch: str) -> int:
        """Returns how many packets between a node and a switch have been lost at most."""
        return self.upwards(node, switch) + self.directions.get(f"{switch}->{node}", 0)


def losses(statistics: NetworkStatistics) -> LostOnLinks:
    """Returns what is lost according to these counts. A packet that is still on a link, or in
    which an impairment has inverted a bit, counts as lost."""
    directions = {
        each.direction: each.lost + each.corrupted + each.in_flight + each.held
        for each in statistics.directions
    }
    return LostOnLinks(directions, {each.name: each.ring_drops for each in statistics.switches})
