"""Finds a switch that did not send on what it received, if a round does not end. It compares the
packets that links brought to the switch with those that left it, and with those that its program
says it refused or summed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.systems.base import FORWARDING_COUNTERS, Evidence, MissingChunks

REFUSED = [each.name for each in FORWARDING_COUNTERS.values() if each.name != "forwarded"]


@dataclass(frozen=True)
class Merging:
    """How many packets a program sends on for each that it receives, by its own counters.

    kept: counters of packets that stay in the switch, because their values are summed there or
    they are refused. released: counters of those of them that leave the switch with a sum. copied:
    the counter of packets that the switch copies to several hosts, in the cell of the job's index.
    copies: how many copies each switch makes of such a packet, by switch.
    """

    kept: Sequence[str] = ()
    released: Sequence[str] = ()
    copied: str = ""
    cell: int = 0
    copies: Mapping[str, int] = field(default_factory=dict)


FORWARDING = Merging()
"""A program that sends on every packet that it does not refuse."""


def blame_switches(
    source: Evidence, owing: Mapping[str, MissingChunks], merging: Merging = FORWARDING
) -> Mapping[str, MissingChunks]:
    """Returns what each host or switch owes. If a switch has received more packets than it sent,
    refused and kept, what the first host owes is missing because of the switch, and the switch
    comes first.

    Packets that come and go while counts are read cannot make a switch seem guilty, because what
    it received, released and copied is read before what it sent, and what it kept is read last.
    """
    if not owing:
        return owing
    switches = [each.name for each in source.statistics().switches]
    added = {switch: _added(source, switch, merging) for switch in switches}
    received = _received(source.statistics())
    after = source.statistics()
    sent = Counter[str]()
    for way in after.directions:
        sent[_ends(way.direction)[0]] += way.packets + way.dropped_by_queue
    blamed = {}
    for switch in after.switches:
        kept = _total(source, switch.name, [*REFUSED, *merging.kept])
        more = added[switch.name]
        if kept is None or more is None:
            continue
        handled = sent[switch.name] - more + kept + switch.ring_drops
        if received[switch.name] > handled:
            blamed[switch.name] = _withheld(owing, received[switch.name], handled, merging)
    return {**blamed, **owing}


def _added(source: Evidence, switch: str, merging: Merging) -> int | None:
    """Returns how many of the packets that a switch sent are sums and further copies, which it did
    not receive as they are; None if its program does not count them."""
    released = _total(source, switch, merging.released)
    copied = source.counters(switch, merging.copied) if merging.copied else {}
    if released is None or copied is None:
        return None
    packets, _ = copied.get(merging.cell, (0, 0))
    return released + packets * max(0, merging.copies.get(switch, 1) - 1)


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


def _total(source: Evidence, switch: str, names: Sequence[str]) -> int | None:
    """Returns the packets in these counters of a switch; None if its program lacks one."""
    counts = [source.counters(switch, name) for name in names]
    if any(cells is None for cells in counts):
        return None
    return sum(packets for cells in counts for packets, _ in (cells or {}).values())


def _withheld(
    owing: Mapping[str, MissingChunks], received: int, handled: int, merging: Merging
) -> MissingChunks:
    first = next(iter(owing.values()))
    ways = "sent, summed or refused" if merging.kept else "sent or refused"
    counts = f"it received {received} packets, and {ways} {handled}"
    return MissingChunks(not_sent_on=first.chunks, slot=counts)
