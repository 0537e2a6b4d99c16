"""Finds a switch that did not send on what it received, if a round between hosts does not end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from agglab.testbed.statistics import NetworkStatistics
from agglab.testbed.systems.base import Evidence, MissingChunks
from agglab.testbed.systems.forwarding import FORWARDING_COUNTERS

REFUSED = [each.name for each in FORWARDING_COUNTERS.values() if each.name != "forwarded"]


def blame_switches(
    source: Evidence, owing: Mapping[str, MissingChunks]
) -> Mapping[str, MissingChunks]:
    """Returns what each host or switch owes. If a switch that only forwards has received more
    packets than it sent and refused, what the first host owes is missing because of the switch, and
    the switch comes first.

    Packets that come and go while counts are read cannot make a switch seem guilty, because what it
    received is read before what it sent.
    """
    if not owing:
        return owing
    received = _received(source.statistics())
    after = source.statistics()
    sent = Counter[str]()
    for way in after.directions:
        sent[_ends(way.direction)[0]] += way.packets + way.dropped_by_queue
    blamed = {}
    for switch in after.switches:
        refused = _refused(source, switch.name)
        handled = sent[switch.name] + (refused or 0) + switch.ring_drops
        if refused is not None and received[switch.name] > handled:
            blamed[switch.name] = _withheld(owing, received[switch.name], handled)
    return {**blamed, **owing}


def _ends(direction: str) -> tuple[str, str]:
    sender, _, receiver = direction.partition("->")
    return sender, receiver


def _received(statistics: NetworkStatistics) -> Counter[str]:
    """Returns how many packets each node has received at least."""
    received = Counter[str]()
    for way in statistics.directions:
        lost = way.dropped_injected + way.lost_link_down + way.held
        received[_ends(way.direction)[1]] += way.seen - lost
    return received


def _refused(source: Evidence, switch: str) -> int | None:
    """Returns how many packets a switch has refused for a reason that it counts; None if its
    program does not count them."""
    counts = [source.counters(switch, counter) for counter in REFUSED]
    if any(cells is None for cells in counts):
        return None
    return sum(packets for cells in counts for packets, _ in (cells or {}).values())


def _withheld(owing: Mapping[str, MissingChunks], received: int, handled: int) -> MissingChunks:
    first = next(iter(owing.values()))
    counts = f"it received {received} packets, and sent or refused {handled}"
    return MissingChunks(not_sent_on=first.chunks, slot=counts)
