"""The steps of one training of the workload `sgd` (workloads/sgd.py) at a worker: which gradient is
summed next, and when. The classes of hosts/iteration.py perform these sums."""

from __future__ import annotations

from numpy.typing import NDArray

from agglab.hosts.workloads import Sgd
from agglab.hosts.workloads.layers import Bucket


class TrainingSteps:
    """The ReductionSchedule (iteration.py) of one training. examples: the training examples of this
    worker. out: room for the sums of all steps."""

    def __init__(
        self, work: Sgd, workers: int, now_ns: int, examples: NDArray, out: NDArray
    ) -> None:
        self._work, self._workers = work, workers
        self._examples, self._out = examples, out
        self._model = work.first_model()
        self._step, self._began_ns = 0, now_ns

    @property
    def next(self) -> Bucket | None:
        """See ReductionSchedule."""
        return self._work.buckets[self._step] if self._step < self._work.steps else None

    @property
    def due_ns(self) -> int:
        """The time at which the computation of the next gradient ends, or the end of the round;
        see ReductionSchedule. The computation of a step begins when the sum of the previous step is
        complete."""
        return self._began_ns + (self._work.compute_ns if self.next else 0)

    def values(self, bucket: Bucket) -> NDArray:
        """Computes and returns the gradient of the next step. The array is the part of `out` into
        which its sum is to be put."""
        place = self._place(bucket)
        examples = self._work.examples_of(self._step, self._examples)
        place[...] = self._work.gradient(self._model, examples)
        return place

    def summed(self, now_ns: int) -> None:
        """Updates the model with the sum of this step's gradients, which is complete."""
        bucket = self._work.buckets[self._step]
        self._model = self._work.moved(self._model, self._place(bucket), self._workers)
        self._step, self._began_ns = self._step + 1, now_ns

    @property
    def elements_left(self) -> list[int]:
        """See ReductionSchedule."""
        return [self._work.parameters] * (self._work.steps - self._step)

    def _place(self, bucket: Bucket) -> NDArray:
        return self._out[bucket.start : bucket.start + bucket.elements]
