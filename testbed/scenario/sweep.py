"""Combines the problems of all points of a sweep, so that each is reported once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from agglab.testbed.base.problems import Problem

Settings = tuple[tuple[str, str], ...]
"""The values of the swept keys, as written."""


def label(settings: Settings) -> str:
    """Returns the settings as one text, such as `workers 3, loss 1%`."""
    return ", ".join(f"{path.rpartition('.')[2]} {text}" for path, text in settings)


def together(found: Sequence[tuple[Settings, Sequence[Problem]]]) -> Iterator[Problem]:
    """Yields each problem once. A problem that all points have belongs to the scenario. A wrong
    swept value is reported at its own position.

    The remaining problems depend on a swept key, and often their texts differ. Of all problems at
    one position, the first is reported, together with the points that have one of them.
    """
    labels = [label(settings) for settings, _ in found]
    swept = {path for settings, _ in found for path, _ in settings}
    having: dict[Problem, set[int]] = {}
    for number, (_, problems) in enumerate(found):
        for problem in problems:
            having.setdefault(problem, set()).add(number)
    while having:
        problem = next(iter(having))
        alike = [problem] if problem.path in swept else _alike(problem, having)
        points = set[int]().union(*(having.pop(each) for each in alike))
        everywhere = len(points) == len(found) and len({each.what for each in alike}) == 1
        if everywhere or problem.path in swept:
            yield problem
        else:
            yield replace(problem, what=f"{problem.what} ({_with(points, labels)})")


def _alike(problem: Problem, having: Mapping[Problem, Collection[int]]) -> list[Problem]:
    """Returns this problem, and the problems that other points have at the same position. Each
    point is included with one problem only."""
    alike, points = [problem], set(having[problem])
    for other, its_points in having.items():
        same_place = (other.where, other.path) == (problem.where, problem.path)
        if same_place and points.isdisjoint(its_points):
            alike.append(other)
            points |= set(its_points)
    return alike


def _with(points: Collection[int], labels: Sequence[str]) -> str:
    first, *more = sorted(points)
    if not more:
        return f"with {labels[first]}"
    if len(more) == 1:
        return f"with {labels[first]}, and also with {labels[more[0]]}"
    return f"with {labels[first]}, and also at {len(more)} more points"
