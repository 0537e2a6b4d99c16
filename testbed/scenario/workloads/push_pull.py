"""Implements the workload of keys and values: each worker has its own keys, and therefore its own
result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agglab.hosts.workloads import PLAIN_DTYPES, InputKey, PushPull, Work
from agglab.hosts.workloads.push_pull import PYTHON
from agglab.testbed.scenario.workloads.base import Workload, library_facts
from agglab.testbed.scenario.workloads.correctness import Verdict, combine, verify
from agglab.testbed.systems.base import ActiveJob, Array, ResolvedScenario, Truth
from agglab.testbed.systems.received_arrays import Received

if TYPE_CHECKING:
    from agglab.testbed.schema.workload_section import Workload as Section


class PushesAndPulls(Workload):
    kind = PushPull.kind
    dtypes = PLAIN_DTYPES
    keys = ("source", "exponent", "vocabulary", "drift")

    def work(self, section: Section, workers: int) -> PushPull:
        own = {name: getattr(section, name) for name in self.keys}
        return PushPull(section.elements, section.dtype, **own)

    def facts(self, work: Work) -> Mapping[str, Any]:
        if not isinstance(work, PushPull) or work.source != PYTHON:
            return {}
        return library_facts()

    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        """Returns the verdict. Each member must have, for each of its keys, the sum over all
        members that pushed that key in this round. The expected sum is what the system makes of
        tensors that have a place for every key, with zero where a member has not pushed it."""
        pushed = {rank: pushes(resolved, job, rank, number) for rank in job.members}
        keys = np.unique(np.concatenate([each["key"] for each in pushed.values()]))
        tensors = [_tensor(keys, each) for each in pushed.values()]
        truth = resolved.system.right_results(resolved, job, None).truth(0, tensors)
        verdicts = []
        for rank, one in received.items():
            own = _at(truth, np.searchsorted(keys, pushed[rank]["key"]))
            verdicts.append(_judged(rank, own, one, pushed[rank]["value"].dtype.name))
        return combine(verdicts)


def pushes(
    resolved: ResolvedScenario, job: ActiveJob, rank: int, number: int
) -> npt.NDArray[np.void]:
    """Returns what a worker pushes in the round with this number. Each element has the fields `key`
    and `value`."""
    return job.job.work.inputs(InputKey(resolved.seed, job.job.number, rank, number))


def _tensor(keys: Array, pushed: npt.NDArray[np.void]) -> Array:
    tensor = np.zeros(keys.size, pushed["value"].dtype)
    tensor[np.searchsorted(keys, pushed["key"])] = pushed["value"]
    return tensor


def _at(truth: Truth, places: npt.NDArray[np.intp]) -> Truth:
    allowed = None if truth.allowed is None else truth.allowed[places]
    return Truth(truth.values[places], allowed)


def _judged(rank: int, own: Truth, received: Received, dtype: str) -> Verdict:
    """Returns the verdict about what one member received."""

    def part(start: int, block: Sequence[Array]) -> Truth:
        return _at(own, np.arange(start, start + block[0].size))

    def inputs(start: int, count: int) -> list[npt.NDArray[Any]]:
        return [own.values[start : start + count]]

    verdict = verify(inputs, part, [received], own.values.size, dtype, 1, False)
    if verdict.first is None:
        return verdict
    return replace(verdict, first=replace(verdict.first, rank=rank))
