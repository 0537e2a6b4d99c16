"""Workloads whose result is one tensor, the same for all workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from agglab.hosts import own_worker
from agglab.hosts.tensor_parts import TensorParts
from agglab.hosts.workloads import (
    PLAIN_DTYPES,
    Dense,
    Embedding,
    InputKey,
    Layers,
    Sparse,
    Torch,
    Work,
)
from agglab.hosts.workloads.layers import BucketOf
from agglab.testbed.scenario.workloads.base import Workload, library_facts
from agglab.testbed.scenario.workloads.correctness import Inputs, Verdict, verify_sums
from agglab.testbed.systems.base import ActiveJob, ResolvedScenario, in_pieces
from agglab.testbed.systems.received_arrays import Received

if TYPE_CHECKING:
    from agglab.testbed.schema.jobs import Job
    from agglab.testbed.schema.workload_section import Workload as Section


def tensor(
    seed: int, job: Job, rank: int, number: int, start: int = 0, count: int | None = None
) -> npt.NDArray[Any]:
    """Returns elements of a worker's input in this round. seed: the scenario's seed. rank: the
    worker's rank. start, count: the first element and the number of elements; if `count` is None,
    all elements from `start` on. For a script, whose input is not known, the elements are zeros,
    because the network's load does not depend on the values."""
    work = job.work
    count = work.elements - start if count is None else count
    if isinstance(work, Torch):
        return np.zeros(count, work.dtype)
    assert isinstance(work, (Dense, Sparse, Embedding, Layers, BucketOf)), "an all-reduce"
    return work.part(InputKey(seed, job.number, rank, number), start, count)


class Parts(Sequence[npt.NDArray[Any]]):
    """The same part of several workers' inputs. The part of a worker is made each time it is
    read."""

    def __init__(self, inputs: Sequence[TensorParts], start: int, count: int) -> None:
        self._inputs, self._start, self._count = inputs, start, count

    def __len__(self) -> int:
        return len(self._inputs)

    @overload
    def __getitem__(self, index: int) -> npt.NDArray[Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Parts: ...

    def __getitem__(self, index: int | slice) -> npt.NDArray[Any] | Parts:
        if isinstance(index, slice):
            return Parts(self._inputs[index], self._start, self._count)
        return self._inputs[index].part(self._start, self._count)


def inputs_of(resolved: ResolvedScenario, job: ActiveJob, number: int) -> Inputs:
    """Returns the inputs of a job's members in a round (verify.Inputs)."""
    declared, seed = job.job, resolved.seed
    if in_pieces(resolved.system, resolved.scenario, declared):
        keys = [InputKey(seed, declared.number, rank, number) for rank in job.members]
        made = [TensorParts(*key, declared.elements, declared.dtype) for key in keys]
        return lambda start, count: Parts(made, start, count)

    def inputs(start: int, count: int) -> list[npt.NDArray[Any]]:
        return [tensor(seed, declared, rank, number, start, count) for rank in job.members]

    return inputs


class AllReduce(Workload):
    kind = Dense.kind

    def work(self, section: Section, workers: int) -> Work:
        return Dense(section.elements, section.dtype)

    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        inputs = inputs_of(resolved, job, number)
        own_sum = own_worker.combine_of(job.job.worker)
        verdict = verify_sums(resolved, job, inputs, list(received.values()), own_sum)
        if verdict.first is None:
            return verdict
        rank = list(received)[verdict.first.rank]
        return replace(verdict, first=replace(verdict.first, rank=rank))


class SparseAllReduce(AllReduce):
    kind = Sparse.kind
    keys = ("density", "block", "overlap")

    def work(self, section: Section, workers: int) -> Sparse:
        own = {name: getattr(section, name) for name in self.keys}
        return Sparse(section.elements, section.dtype, workers, **own)


class EmbeddingAllReduce(AllReduce):
    kind = Embedding.kind
    dtypes = PLAIN_DTYPES
    keys = ("width", "tokens", "row_order")

    def work(self, section: Section, workers: int) -> Embedding:
        own = {name: getattr(section, name) for name in self.keys}
        return Embedding(section.elements, section.dtype, **own)

    def facts(self, work: Work) -> Mapping[str, Any]:
        return library_facts()
