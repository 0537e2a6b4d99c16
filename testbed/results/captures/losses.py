"""Says at the frames of a run's captures which frames the links lost on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from agglab.testbed.base.traffic_counters import DirectionStatistics
from agglab.testbed.results.captures.merged import INBOUND, OUTBOUND, Interface, count_frames
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.schema.faults import Impair
from agglab.topologies import Jitter, Link, LinkEnd, Reorder

Comments = dict[tuple[int, int], str]
SHOWN_MAX = 10
"""How many numbers of lost frames one comment has."""


def interfaces(
    resolved: ResolvedScenario, ways: Iterable[DirectionStatistics], folder: Path
) -> list[Interface]:
    """Returns every port of every switch, with comments on the frames that its link lost. folder:
    the folder of the captures."""
    counted = {way.direction: way for way in ways}
    disordered = set(_disordered(resolved))
    switches = {switch.name for switch in resolved.graph.switches}
    return [
        _port(link, end, counted, disordered, folder)
        for link in resolved.graph.links
        for end in (link.a, link.b)
        if end.node in switches
    ]


def _disordered(resolved: ResolvedScenario) -> Iterator[str]:
    """Yields the directions whose frames may arrive in another order than they are counted in."""
    for link in resolved.graph.links:
        for name, _, _, direction in link.directions():
            if any(isinstance(each, (Jitter, Reorder)) for each in direction.impairments):
                yield name
    for fault in resolved.faults:
        action = fault.action
        if isinstance(action, Impair) and isinstance(action.impairment, (Jitter, Reorder)):
            yield from action.directions


def _port(
    link: Link,
    end: LinkEnd,
    counted: Mapping[str, DirectionStatistics],
    disordered: Iterable[str],
    folder: Path,
) -> Interface:
    comments: Comments = {}
    rate_bps, neighbour = None, ""
    for name, sender, receiver, direction in link.directions():
        if sender == end:
            rate_bps, neighbour = direction.rate_bps, receiver.node
            comments |= _sent(counted[name], folder / f"{end.interface}_out.pcap")
        elif name not in disordered:
            comments |= _received(counted[name], folder / f"{end.interface}_in.pcap")
    return Interface(end.interface, neighbour, rate_bps, comments)


def _sent(way: DirectionStatistics, capture: Path) -> Comments:
    """Returns a comment on each frame sent that the link then lost. The frame's number on the link
    is that in the capture, unless the queue or something else lost frames between the two."""
    sent = way.seen + way.in_flight
    if not way.dropped_numbers or way.dropped_by_queue or count_frames(capture) != sent:
        return {}
    text = f"lost on purpose on {way.direction}, where it had number"
    return {(OUTBOUND, number): f"{text} {number}" for number in way.dropped_numbers}


def _received(way: DirectionStatistics, capture: Path) -> Comments:
    """Returns a comment on each received frame before which others were lost."""
    lost = way.dropped_numbers
    kept = way.seen - len(lost)
    known = len(lost) == way.dropped_injected and not (way.lost_link_down or way.duplicated)
    if not lost or not known or count_frames(capture) != kept:
        return {}
    # The i-th of the lost frames follows (its number - i) received ones.
    runs = groupby(range(len(lost)), key=lambda i: lost[i] - i)
    places = ((place, [lost[i] for i in run]) for place, run in runs)
    return {
        (INBOUND, place): f"before it, {way.direction} lost on purpose: {_listed(numbers)}"
        for place, numbers in places
    }


def _listed(numbers: list[int]) -> str:
    kind = "number" if len(numbers) == 1 else "numbers"
    more = f" and {len(numbers) - SHOWN_MAX} more" if len(numbers) > SHOWN_MAX else ""
    return f"{kind} {', '.join(map(str, numbers[:SHOWN_MAX]))}{more}"
