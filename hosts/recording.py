"""Samples of an agent's state at one moment, and the files in which a real agent keeps them for the
testbed.

A file of samples is a row of SAMPLE for each, appended whole; the latencies beside it are counts of
histogram.py, replaced whole. Imports the other modules of `hosts` only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import histogram
from agglab.hosts.endpoint import Endpoint

FIELDS = (
    "time_ns",
    "bytes_sent",
    "bytes_received",
    "retransmitted",
    "in_flight",
    "round_trip_ns",
    "chunks_done",
)
COUNTED = FIELDS[1:4]
"""The fields that only grow while an agent runs; the others hold the value of the moment."""
SAMPLE = np.dtype([(name, np.int64) for name in FIELDS])
SAMPLES_SUFFIX, LATENCIES_SUFFIX = ".samples", ".latencies.npy"
KEPT_MAX = 32
"""Samples that are lost, at most, with a server that is killed."""

Sample = tuple[int, ...]
"""A row of SAMPLE."""


def sample(now_ns: int, stats: Mapping[str, int], endpoint: Endpoint) -> Sample:
    """Returns a session's counts since it was opened, and its state. The round trip is the smoothed
    one of RFC 6298, the longest of its paths; 0 where none has been measured."""
    measured = (r.srtt_ns for r in getattr(endpoint, "recoveries", ()) if r.sampled)
    return (
        now_ns,
        *(stats.get(name, 0) for name in COUNTED),
        getattr(endpoint, "in_flight", 0),
        max(measured, default=0),
        endpoint.chunks_done,
    )


def latencies(endpoint: Endpoint) -> NDArray[np.int64]:
    """Returns a histogram (counts as in histogram.py) of the times from a packet's first sending to
    its answer, since the endpoint was made. All counts are 0 for an endpoint that does not use
    hosts.recovery."""
    counts = histogram.none()
    for recovery in getattr(endpoint, "recoveries", ()):
        counts += recovery.answered_after
    return counts


class Recorder:
    """Keeps samples of a real agent in files. folder: where the files are. name: the name of this
    run of the program. every_ns: the shortest time between two samples."""

    def __init__(self, folder: Path, name: str, every_ns: int) -> None:
        assert every_ns > 0
        self._samples = folder / f"{name}{SAMPLES_SUFFIX}"
        self._latencies = folder / f"{name}{LATENCIES_SUFFIX}"
        self._every_ns = every_ns
        self._kept: list[Sample] = []
        self.due_ns = 0
        """When the next sample is due."""

    def add(self, sampled: Sample) -> None:
        """A sample, at its time."""
        self._kept.append(sampled)
        self.due_ns = sampled[0] + self._every_ns

    @property
    def is_full(self) -> bool:
        """Whether what was kept should be written now, whatever comes."""
        return len(self._kept) >= KEPT_MAX

    def flush(self, counts: NDArray[np.int64]) -> None:
        """Writes the samples that were kept, and the latencies so far."""
        kept, self._kept = self._kept, []
        with self._samples.open("ab") as file:
            file.write(np.array(kept, SAMPLE).tobytes())
        part = self._latencies.with_suffix(".part")
        with part.open("wb") as file:
            np.save(file, counts)
        os.replace(part, self._latencies)


def read_samples(path: Path) -> NDArray:
    """Returns the samples in a file, of dtype SAMPLE; an incomplete last row is left out."""
    data = path.read_bytes()
    return np.frombuffer(data[: len(data) // SAMPLE.itemsize * SAMPLE.itemsize], SAMPLE)
