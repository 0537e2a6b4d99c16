"""Finds links between switches that carried nothing although they are on shortest paths of a job's
traffic, while the links beside them were what limited a round.

Switches forward all frames for the hosts of another switch by one port
(systems/plan/forwarding.py), so of several equal paths only one is used. The bounds of a run assume
the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from agglab.hosts.workloads import Iterated
from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.scenario.workloads import KINDS
from agglab.testbed.systems.base import ActiveJob
from agglab.testbed.systems.between_hosts import BetweenHosts
from agglab.testbed.systems.forwarding import rates, slowest_crossing_s, spread_bytes
from agglab.testbed.systems.plan.forwarding import wiring_of
from agglab.testbed.systems.plan.tree import Wiring
from agglab.topologies import Link, Topology

MORE = 1.01
"""A link counts as the limit if it needs this many times as long as any link to a host."""
NAMED_MAX = 3
Way = tuple[str, str]
"""A direction between two switches: its sender and its receiver."""
Carried = Mapping[str, int]
"""The bytes that each direction (`s1->s2`) carried."""


@dataclass(frozen=True)
class IdlePaths:
    """Links that a job could have used. idle: the links that carried nothing in either direction,
    of `usable` links between switches on shortest paths between its hosts. busy: the direction that
    limited its rounds. bound_s: the time that one path allows. spread_bound_s: the time if all
    shortest paths had equal shares; None if it is not known."""

    job: str
    idle: Sequence[str]
    usable: int
    busy: str
    bound_s: float
    spread_bound_s: float | None

    def __str__(self) -> str:
        more = len(self.idle) - NAMED_MAX
        named = ", ".join(self.idle[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
        text = (
            f"traffic takes one of several shortest paths: {len(self.idle)} of {self.usable} links "
            f"between switches carried nothing ({named}), and {self.busy} limited {self.job}"
        )
        if self.spread_bound_s is None:
            return text
        return (
            f"{text}; if all shortest paths had equal shares, the links alone would need "
            f"{self.spread_bound_s:.4f} s a round instead of {self.bound_s:.4f} s"
        )

    def numbers(self) -> dict[str, float]:
        known = {} if self.spread_bound_s is None else {"spread_bound_s": self.spread_bound_s}
        return {
            "idle": len(self.idle),
            "usable": self.usable,
            "link_bound_s": self.bound_s,
            **known,
        }


def idle_paths(
    resolved: ResolvedScenario, bounds_s: Mapping[str, float], carried: Carried
) -> Iterator[IdlePaths]:
    """Yields the idle paths of each job that has some. bounds_s: the `link_bound_s` of each job."""
    busy = _limiting(resolved.graph, carried)
    if busy is None:
        return
    wiring = wiring_of(resolved.graph)
    for declared in resolved.jobs:
        job = resolved.whole(declared)
        homes = {wiring.attached[host][0] for host in (*declared.hosts, *declared.servers)}
        choices = _choices(wiring, homes)
        usable = {frozenset((near, far)) for near, far in choices}
        idle = {link for link in usable if not any(carried.get(w) for w in _directions(link))}
        bound_s, spread_s = bounds_s[declared.name], _spread_bound_s(resolved, job)
        gains = spread_s * MORE < bound_s if spread_s is not None else _is_choice(choices, busy)
        if idle and gains:
            yield IdlePaths(
                declared.name,
                [each.name for each in resolved.graph.links if _ends(each) in idle],
                len(usable),
                "->".join(busy),
                bound_s,
                spread_s,
            )


def _limiting(graph: Topology, carried: Carried) -> Way | None:
    """Returns the direction between switches that needed the most time for its bytes; None if a
    link to a host needed about as long."""
    switches = {switch.name for switch in graph.switches}
    needed_s = {name: carried.get(name, 0) * 8 / rate for name, rate in rates(graph)}
    inner = {name for name in needed_s if switches.issuperset(name.split("->"))}
    busiest = max(inner, key=lambda name: (needed_s[name], name), default="")
    to_hosts = max((needed_s[name] for name in needed_s.keys() - inner), default=0.0)
    if not busiest or needed_s[busiest] <= MORE * to_hosts:
        return None
    sender, _, receiver = busiest.partition("->")
    return sender, receiver


def _choices(wiring: Wiring, homes: Collection[str]) -> dict[Way, bool]:
    """Returns the directions on shortest paths between these switches. The value is true if their
    sender has another direction of the same length to one of the switches."""
    choices: dict[Way, bool] = {}
    for target in sorted(homes):
        distances = wiring.distances(target)
        reached = [home for home in homes if home in distances]
        seen = set(reached)
        while reached:
            switch = reached.pop()
            following = wiring.next_hops(switch, distances)
            for way in ((switch, other) for other in following):
                choices[way] = choices.get(way, False) or len(following) > 1
            reached += [other for other in following if other not in seen]
            seen.update(following)
    return choices


def _is_choice(choices: Mapping[Way, bool], way: Way) -> bool:
    """Returns whether traffic can avoid the link, in one direction or the other."""
    near, far = way
    return choices.get((near, far), False) or choices.get((far, near), False)


def _directions(link: Collection[str]) -> list[str]:
    return [f"{near}->{far}" for near, far in permutations(link)]


def _ends(link: Link) -> frozenset[str]:
    return frozenset((link.a.node, link.b.node))


def _spread_bound_s(resolved: ResolvedScenario, job: ActiveJob) -> float | None:
    """Returns the time that the links need for a round if all shortest paths have equal shares of
    the traffic. Returns None if it is not known who sends how much: the system's switches sum, a
    round has several all-reduces, or the scenario does not say what a round reduces."""
    work = job.job.work
    if isinstance(work, Iterated) or KINDS[work.kind].unpredictable:
        return None
    if not isinstance(resolved.system, BetweenHosts):
        return None
    sizes = spread_bytes(resolved.graph, resolved.system.least_flows(resolved, job))
    return slowest_crossing_s(resolved.graph, sizes) or None
