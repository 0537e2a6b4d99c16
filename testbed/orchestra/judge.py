"""Verification of rounds: what every worker received against an independent computation."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from hosts import own_worker
from hosts.tensors import make_tensor
from testbed.backend import Backend
from testbed.orchestra.outcome import JobResult, Round
from testbed.verify import Verdict, verify


class Judge:
    """lanes: of the run; seed: the scenario's."""

    def __init__(self, backend: Backend, seed: int, lanes: int) -> None:
        self._backend = backend
        self._seed = seed
        self._lanes = lanes

    def verdict(self, job: JobResult, done: Round) -> tuple[Verdict, str]:
        """What one round's sums were, every member's of every element; and the SHA-256 of what the
        first member received, by which runs are compared."""
        number, workload = job.tenant.number, job.tenant.workload
        received = [self._backend.sums(number, rank, done.number) for rank in done.members]
        present = [sums for sums in received if sums is not None]
        assert len(present) == len(received), f"round {done.number}: an agent has left no sums"
        assert all(sums.shape == (workload.elements,) for sums in present)

        def inputs(start: int, count: int) -> list[npt.NDArray[Any]]:
            return [
                make_tensor(self._seed, number, rank, done.number, count, workload.dtype, start)
                for rank in done.members
            ]

        combine = own_worker.combine_of(workload.worker)
        verdict = verify(inputs, [np.asarray(sums) for sums in present], self._lanes, combine)
        return verdict, hashlib.sha256(present[0].tobytes()).hexdigest()
