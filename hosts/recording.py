"""Samples of an agent's state, and the files in which an agent on the real clock keeps them for the
testbed.

A file of samples holds one record of dtype SAMPLE for each sample. Only whole records are appended
to it, and nothing else is changed. A second file holds the histogram of latencies (histogram.py);
it is replaced as a whole. This module imports only other modules of `hosts`.
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
"""The fields that only grow while an agent runs. The other fields hold the value of the moment."""
SAMPLE = np.dtype([(name, np.int64) for name in FIELDS])
SAMPLES_SUFFIX, LATENCIES_SUFFIX = ".samples", ".latencies.npy"
KEPT_MAX = 32
"""The largest number of samples that are kept in memory. At most this many are lost when a server
is killed."""

Sample = tuple[int, ...]
"""A record of dtype SAMPLE."""


def sample(now_ns: int, stats: Mapping[str, int], endpoint: Endpoint) -> Sample:
    """Returns a sample of a session: its counts since it was opened, and its state. The sampled
    round trip is the smoothed round-trip time of RFC 6298, the longest over the session's paths. It
    is 0 if none has been measured."""
    measured = (r.srtt_ns for r in getattr(endpoint, "recoveries", ()) if r.sampled)
    return (
        now_ns,
        *(stats.get(name, 0) for name in COUNTED),
        getattr(endpoint, "in_flight", 0),
        max(measured, default=0),
        endpoint.chunks_done,
    )


def latencies(endpoint: Endpoint) -> NDArray[np.int64]:
    """Returns a histogram (histogram.py) of the times from a packet's first sending to its answer,
    since the endpoint was made. All counts are 0 for an endpoint that does not use
    hosts.recovery."""
    counts = histogram.none()
    for recovery in getattr(endpoint, "recoveries", ()):
        counts += recovery.answered_after
    return counts


class Recorder:
    """A recorder that keeps the samples of one agent on the real clock in files. folder: where the
    files are. name: the name of this run of the program. every_ns: the shortest time between two
    samples."""

    def __init__(self, folder: Path, name: str, every_ns: int) -> None:
        assert every_ns > 0
        self._samples = folder / f"{name}{SAMPLES_SUFFIX}"
        self._latencies = folder / f"{name}{LATENCIES_SUFFIX}"
        self._every_ns = every_ns
        self._kept: list[Sample] = []
        self.due_ns = 0
        """The time at which the next sample is due."""

    def add(self, sampled: Sample) -> None:
        """Adds a sample, and sets `due_ns` to `every_ns` after the time of the sample."""
        self._kept.append(sampled)
        self.due_ns = sampled[0] + self._every_ns

    @property
    def is_full(self) -> bool:
        """Whether the samples in memory should be written now, because there are many."""
        return len(self._kept) >= KEPT_MAX

    def flush(self, counts: NDArray[np.int64]) -> None:
        """Appends the samples in memory to the file of samples, and replaces the file of latencies
        with `counts`."""
        kept, self._kept = self._kept, []
        with self._samples.open("ab") as file:
            file.write(np.array(kept, SAMPLE).tobytes())
        part = self._latencies.with_suffix(".part")
        with part.open("wb") as file:
            np.save(file, counts)
        os.replace(part, self._latencies)


def read_samples(path: Path) -> NDArray:
    """Returns the samples in a file, of dtype SAMPLE. A last record that was written only in part
    is left out."""
    data = path.read_bytes()
    return np.frombuffer(data[: len(data) // SAMPLE.itemsize * SAMPLE.itemsize], SAMPLE)
