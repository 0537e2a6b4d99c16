"""Distances in a graph, counted in links."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence


def distances(neighbours: Mapping[str, Sequence[str]], starts: Iterable[str]) -> dict[str, int]:
    """Returns how many links each node that can be reached is away from the nearest start.
    neighbours: those of every node."""
    found = dict.fromkeys(starts, 0)
    waiting = deque(found)
    while waiting:
        node = waiting.popleft()
        for neighbour in neighbours[node]:
            if neighbour not in found:
                found[neighbour] = found[node] + 1
                waiting.append(neighbour)
    return found
