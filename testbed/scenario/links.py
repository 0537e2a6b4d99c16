"""Finds what a scenario says of each direction of a link: the values of `links`, and what happens
to frames during the whole run.

Two places can state such an impairment: `links.loss` with its overrides, and the entries of
`faults` that are impairments without times. Both become the same values (topologies/graph.py), and
a direction has at most one of a kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from agglab.testbed.schema.fault_kinds import KINDS, FaultEntry, duration_s
from agglab.testbed.schema.jobs import Finding
from agglab.testbed.schema.key import yaml_name
from agglab.testbed.schema.network_sections import LinkOverride, Links
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import EVERYTHING, Trust
from agglab.topologies import Drop, Topology
from agglab.topologies.graph import Impairment

FIELDS = {yaml_name(item): item.name for item in fields(LinkOverride)}


def matches(pattern: str | None, link: str, direction: str) -> bool:
    """Returns whether the pattern matches. A pattern with '->' is compared with directions. Any
    other pattern is compared with links, and so matches both directions."""
    return pattern is not None and fnmatchcase(direction if "->" in pattern else link, pattern)


def stated(
    links: Links, key: str, link: str, direction: str, trust: Trust = EVERYTHING
) -> tuple[str, Any]:
    """Returns the path that states a direction's value of a key, and the value. The path is that of
    the last override that states the value or, if there is none, the section itself. The value is
    None if it was not read without error."""
    found = f"links.{key}", getattr(links, FIELDS[key]) if trust(f"links.{key}") else None
    for i, override in enumerate(links.overrides):
        path = f"links.overrides[{i}]"
        if not (trust(f"{path}.match") and matches(override.match, link, direction)):
            continue
        if not trust(f"{path}.{key}"):
            found = f"{path}.{key}", None
        elif (own := getattr(override, FIELDS[key])) is not None:
            found = f"{path}.{key}", own
    return found


@dataclass(frozen=True)
class Stated:
    """An impairment of a direction. path: the key, or the entry of `faults`, that states it.
    impairment: None if the key was not read without error."""

    kind: str
    path: str
    impairment: Impairment | None


def is_constant(entry: FaultEntry) -> bool:
    """Returns whether the entry is an impairment for the whole run. An entry that is not is a
    Fault, which begins and may end."""
    always = not entry.at_s and entry.at_chunk is None and duration_s(entry) is None
    return KINDS[entry.kind].impairment is not None and always


def impairments(scenario: Scenario, link: str, direction: str) -> tuple[Impairment, ...]:
    """Returns all impairments of a direction in a checked scenario. Losses come first, because the
    seed of each impairment follows from its position. The others are in the order of `faults`."""
    made = sorted(_stated(scenario, link, direction), key=lambda each: each.kind != Drop.kind)
    values = (each.impairment for each in made if each.impairment)
    return tuple(each for each in values if each != Drop(0.0))


def doubled(
    scenario: Scenario, graph: Topology, trust: Trust, sound: Collection[int]
) -> Iterator[Finding]:
    """Yields a problem for each entry of `faults` that states an impairment which another key
    already states. sound: the numbers of the entries that have no other problem."""
    told = set()
    ways = [(link.name, way) for link in graph.links for way, _, _, _ in link.directions()]
    for link, way in ways:
        said: dict[str, str] = {}
        for each in _stated(scenario, link, way, trust, sound):
            first = said.setdefault(each.kind, each.path)
            if first != each.path and each.path not in told:
                told.add(each.path)
                what = f"{each.kind} of {way} for the whole run is already set by {first}"
                yield each.path, what, "one of the two"


def _stated(
    scenario: Scenario,
    link: str,
    direction: str,
    trust: Trust = EVERYTHING,
    sound: Collection[int] | None = None,
) -> Iterator[Stated]:
    """Yields the impairments that the file states for one direction. A loss of 0 in `links` is not
    an impairment."""
    path, loss = stated(scenario.links, "loss", link, direction, trust)
    if loss is None or loss > 0:
        yield Stated(Drop.kind, path, None if loss is None else Drop(loss))
    for i, entry in enumerate(scenario.faults):
        if sound is None or i in sound:
            build = KINDS[entry.kind].impairment
            if build and is_constant(entry) and matches(entry.link, link, direction):
                yield Stated(entry.kind, f"faults[{i}]", build(entry))
