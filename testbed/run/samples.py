"""Stores a backend's samples during a run, as a track for each worker, link and switch.

A track has a row of whole numbers for each moment. When tracks have become too long, every second
row is removed, and samples are taken half as often from then on. In this way a run of any length
keeps about as many rows. Counts only grow, so rates over the longer intervals are still exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import recording
from agglab.testbed.base.worker_id import WorkerId

AGENT = recording.FIELDS
LINK = ("time_ns", "bytes", "queue_drops", "queue", "queue_bytes")
SWITCH = ("time_ns", "slots_in_use")
COUNTER = ("time_ns", "count")
VALUES_MAX = 30_000
"""About how many numbers a run keeps, which make half a megabyte of series.csv."""
ROWS_MIN, ROWS_MAX = 64, 1000

Row = tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """All samples of a run. Rows are int64 arrays of shape (moments, columns); constants such as
    LINK name the columns.

    workers: the rows of each run of an agent's program, in order. links: by direction. switches: by
    name. counters: those of the programs' own, by (switch, counter). latencies: counts of
    hosts.histogram, by agent. every_ns: the final interval between rows.
    """

    workers: Mapping[WorkerId, list[NDArray[np.int64]]] = field(default_factory=dict)
    links: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    switches: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    counters: Mapping[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict)
    latencies: Mapping[WorkerId, NDArray[np.int64]] = field(default_factory=dict)
    every_ns: int = 0


class Tracks:
    """Takes a sample at every multiple of `every_ns`. The interval grows when there are too many
    samples.

    look: a function that returns the rows of a moment by name. Each row begins with the time of the
    moment.
    """

    def __init__(self, every_ns: int, look: Callable[[int], Mapping[Any, Row]]) -> None:
        assert every_ns > 0
        self._look = look
        self.every_ns = every_ns
        self._rows: dict[Any, list[Row]] = {}
        self._moments: list[int] = []
        self.due_ns = 0
        """The time at which the next sample is due."""

    def look(self, now_ns: int) -> None:
        """Stores the sample of this moment."""
        values = 0
        for name, row in self._look(now_ns).items():
            self._rows.setdefault(name, []).append(row)
            values += len(row)
        self._moments.append(now_ns)
        if len(self._moments) >= min(ROWS_MAX, max(ROWS_MIN, VALUES_MAX // max(1, values))):
            self._thin_out()
        self.due_ns = (now_ns // self.every_ns + 1) * self.every_ns

    def _thin_out(self) -> None:
        self.every_ns *= 2
        del self._moments[1::2]
        kept = set(self._moments)
        for rows in self._rows.values():
            rows[:] = [row for row in rows if row[0] in kept]

    def kept(self) -> dict[Any, NDArray[np.int64]]:
        """Returns the tracks that have a row, by name."""
        return {name: np.array(rows, np.int64) for name, rows in self._rows.items() if rows}
