"""Reads the files in which real agents recorded samples and latencies (hosts/recording.py)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured
from numpy.typing import NDArray

from agglab.hosts.recording import LATENCIES_SUFFIX, SAMPLES_SUFFIX, read_samples
from agglab.testbed.base.worker_id import WorkerId

Agents = Mapping[tuple[int, int], "WorkerId"]
"""The agents by (number of the job, rank)."""


def samples(folder: Path, agents: Agents, stride: int) -> dict[WorkerId, list[NDArray[np.int64]]]:
    """Returns for each agent the rows of each run of its program, in order. stride: if it is n,
    only every n-th row is kept."""
    found: dict[WorkerId, list[NDArray[np.int64]]] = {}
    for (job, rank), worker in agents.items():
        files = _files(folder, job, rank, SAMPLES_SUFFIX)
        found[worker] = [structured_to_unstructured(read_samples(path))[::stride] for path in files]
    return found


def latencies(folder: Path, agents: Agents) -> dict[WorkerId, NDArray[np.int64]]:
    """Returns for each agent its counted latencies, summed over all runs of its program."""
    found: dict[WorkerId, NDArray[np.int64]] = {}
    for (job, rank), worker in agents.items():
        files = _files(folder, job, rank, LATENCIES_SUFFIX)
        if files:
            found[worker] = np.sum([np.load(path) for path in files], axis=0)
    return found


def _files(folder: Path, job: int, rank: int, suffix: str) -> list[Path]:
    """Returns the files with the oldest first. Their names end with the time at which the program
    was started."""
    found = folder.glob(f"job{job}-rank{rank}-[0-9]*{suffix}")
    return sorted(found, key=lambda path: int(path.name.removesuffix(suffix).rpartition("-")[2]))
