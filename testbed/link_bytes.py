"""Bytes on every link, predicted and measured: one chunk per slot and tag, whatever is below.

The prediction knows the scenario alone. What was sent again comes on top and is counted where it is
sent: by the worker, or by the switch that repeats a partial sum or a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agglab.testbed.bounds import round_bytes
from agglab.testbed.measurements import Measurements
from agglab.testbed.plan import Tree
from agglab.testbed.scenario import Scenario


@dataclass
class Expected:
    """Bytes of one direction: what all rounds send, and how much of what was sent again it can
    have carried, at least and at most."""

    predicted: int = 0
    again_min: int = 0
    again_max: int = 0

    def allows(self, measured: int) -> bool:
        return self.again_min <= measured - self.predicted <= self.again_max


def compare(
    scenario: Scenario,
    measured: Measurements,
    trees: Mapping[int, Tree],
    links: dict[str, dict[str, dict[str, Any]]],
) -> tuple[bool | None, str]:
    """Add `predicted_bytes` to every direction of `links`; whether all of them carried that and
    nothing but what was counted as sent again. None, and why, where nobody can tell."""
    unclear = _unclear(scenario, measured)
    expected = {} if unclear else _expected(scenario, measured, trees)
    for ways in links.values():
        for name, way in ways.items():
            way["predicted_bytes"] = None if unclear else expected.get(name, Expected()).predicted
    ways = {name: way for link in links.values() for name, way in link.items()}
    full = next((name for name, way in ways.items() if way["queue_drops"]), None)
    if full and not unclear:
        unclear = f"the queue of {full} had no room for frames that were counted as sent"
    if unclear:
        return None, unclear
    return all(expected.get(n, Expected()).allows(way["bytes"]) for n, way in ways.items()), ""


def _unclear(scenario: Scenario, measured: Measurements) -> str:
    """Why nobody can tell what the links should have carried; empty where that is known."""
    for result in measured.outcome.jobs:
        if result.failure:
            return f"{result.tenant.name} failed: its last round sent part of its bytes"
        if result.restarts:
            return f"{result.tenant.name} ran rounds again: they sent part of their bytes twice"
    if scenario.switch.partition == "dynamic":
        return "partition: dynamic changes windows, and so the exponents sent, as jobs come and go"
    return ""


def _expected(
    scenario: Scenario, measured: Measurements, trees: Mapping[int, Tree]
) -> dict[str, Expected]:
    directions: dict[str, Expected] = {}
    for index, result in enumerate(measured.outcome.jobs):
        size = round_bytes(scenario, result.tenant) * len(result.rounds)
        repeats = _Repeats(measured, index, size)
        for name, low, high in repeats.of(trees[result.tenant.number]):
            way = directions.setdefault(name, Expected())
            way.predicted += size
            way.again_min += low
            way.again_max += high
    return directions


@dataclass
class _Repeats:
    """What was sent again on each direction of one job's tree. size: of all its rounds."""

    measured: Measurements
    index: int
    size: int

    def of(self, tree: Tree) -> Iterator[tuple[str, int, int]]:
        """(direction, least, most)."""
        sent = self._sent_by_hosts()
        for switch, branch in tree.branches.items():
            down = self._bytes(switch, "repeated")
            for _, node in branch.children:
                up = (
                    sent[node] - self.size
                    if node in sent
                    else self._bytes(node, "partial_repeated")
                )
                yield f"{node}->{switch}", up, up
                yield f"{switch}->{node}", 0, down

    def _sent_by_hosts(self) -> dict[str, int]:
        result = self.measured.outcome.jobs[self.index]
        sent = dict.fromkeys(result.tenant.hosts, 0)
        for done in result.rounds:
            for rank, event in done.ended.items():
                sent[result.tenant.hosts[rank]] += event["stats"]["bytes_sent"]
        return sent

    def _bytes(self, switch: str, kind: str) -> int:
        cells = self.measured.counters[switch].get(kind, {})
        return cells.get(self.index, (0, 0))[1]
