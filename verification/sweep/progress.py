"""What the runs of a sweep came to: kept in a file, from which a sweep goes on, and as text."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from agglab.verification.sweep.points import Point
from agglab.verification.sweep.trial import Outcomes, Red

EXAMPLES = 3


class Record:
    """The outcomes of points that have been run with certain seeds."""

    def __init__(self, path: Path | None, seeds: range) -> None:
        """path: a file in which each line is a finished point; None to keep none."""
        self.seeds = seeds
        self._path = path
        self._known: dict[str, Outcomes] = {}
        if path is not None and path.is_file():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                reds = tuple(Red(**red) for red in entry["reds"])
                self._known[entry["key"]] = Outcomes(reds, tuple(entry["time_s"]))

    def has(self, point: Point) -> bool:
        return self._key(point) in self._known

    def add(self, point: Point, outcomes: Outcomes) -> None:
        self._known[self._key(point)] = outcomes
        if self._path is not None:
            entry = {"key": self._key(point), **asdict(outcomes)}
            with self._path.open("a") as file:
                file.write(json.dumps(entry) + "\n")

    def of(self, points: Sequence[Point]) -> dict[Point, Outcomes]:
        """Returns the outcomes of those of these points that have been run."""
        return {point: self._known[self._key(point)] for point in points if self.has(point)}

    def _key(self, point: Point) -> str:
        return f"{' '.join(point.settings)} seeds {self.seeds[0]}-{self.seeds[-1]}"


def summary(outcomes: Mapping[Point, Outcomes]) -> str:
    """Returns lines about what was reported, grouped by its kind, the system and the workload."""
    groups: defaultdict[tuple[str, str, str], list[tuple[Point, Red]]] = defaultdict(list)
    for point, each in outcomes.items():
        for red in each.reds:
            groups[red.kind, point.variant, point.kind].append((point, red))
    lines = []
    for (kind, variant, work), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        lines.append(f"{kind}: {len(members)} runs of {variant}, {work}")
        for point, red in members[:EXAMPLES]:
            where = f"{point.topology}, {point.size}, {point.loss} loss, seed {red.seed}"
            lines.append(f"  {where}: {red.text}")
    runs = sum(len(each.time_s) for each in outcomes.values())
    red_runs = sum(len({red.seed for red in each.reds}) for each in outcomes.values())
    return "\n".join([*lines, f"{runs} runs of {len(outcomes)} points: {red_runs} red"])
