"""Computes which chunks of a round do not fit the scale of integers, from nothing but the
inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, log2

import numpy as np

from agglab.hosts.workloads import InputKey
from agglab.testbed.systems.base import ActiveJob, Array


def limit_of(workers: int) -> float:
    """Returns the largest integer that a worker may send. With it, the sum of all workers' integers
    fits into int32."""
    return 2.0 ** (31 - ceil(log2(workers))) - 1


def unfit(inputs: Sequence[Array], lanes: int, scale_log2: int) -> Array:
    """Returns for each chunk of float32 blocks whether a value of some worker does not fit. The
    result is bool of shape (chunks,)."""
    limit, chunks = limit_of(len(inputs)), -(-inputs[0].size // lanes)
    found = np.zeros(chunks, np.bool_)
    for x in inputs:
        fits = np.zeros(chunks * lanes, np.bool_)
        fits[x.size :] = True
        with np.errstate(invalid="ignore", over="ignore"):
            fits[: x.size] = np.abs(np.ldexp(x.astype(np.float64), scale_log2)) <= limit
        found |= ~fits.reshape(chunks, lanes).all(axis=1)
    return found


@lru_cache(maxsize=1024)
def unfit_chunks(seed: int, lanes: int, scale_log2: int, job: ActiveJob, number: int) -> int:
    """Returns how many chunks of this round have values that do not fit the scale."""
    if job.job.dtype != "float32":
        return 0
    inputs = [
        job.job.work.inputs(InputKey(seed, job.job.number, rank, number)) for rank in job.members
    ]
    return int(np.count_nonzero(unfit(inputs, lanes, scale_log2)))
