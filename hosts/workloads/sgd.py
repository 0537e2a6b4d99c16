"""The workload `sgd`: synchronous training of a small network, computed by the agents themselves. A
round is one training of `steps` steps. Each step sums the gradients of all workers and updates the
model.

The task is made from the scenario's seed. Each class has a centre in a space of `features`
dimensions, and an example is the centre of its class plus noise. The network has one hidden layer
of rectified linear units and ends in a softmax; the loss is the cross-entropy. Each worker draws
its own examples, `batch` for each step. All workers begin with the same model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.bfloat16 import cast, dtype_of, numbers
from agglab.hosts.workloads.base import InputKey
from agglab.hosts.workloads.dense import Dense
from agglab.hosts.workloads.layers import Bucket

CENTRES, MODEL, LABELS, NOISE, HELD_OUT = range(2001, 2006)
"""Names of streams of random numbers."""
HELD_OUT_EXAMPLES = 1000
NOISE_OF = 4
"""The number of uniform random numbers between -0.5 and 0.5 whose sum, times SPREAD, is the noise
of a feature."""
SPREAD = 1.5
"""The factor of the noise. For comparison: a centre is between -1 and 1 in every dimension."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sgd:
    """One training (base.Work). The tensor has the gradients of all steps, one after the other.
    rate: the learning rate, by which the mean gradient of the workers is multiplied. compute_ns:
    how long the computation of a step's gradient takes. goal: the accuracy whose first occurrence
    the testbed looks for."""

    kind: ClassVar = "sgd"
    in_place: ClassVar = False
    dtype: str
    steps: int
    features: int
    hidden: int
    classes: int
    batch: int
    rate: float
    compute_ns: int
    goal: float = 1.0

    def __post_init__(self) -> None:
        """Raises ValueError, with a message of one line, if a field has an impossible value."""
        for name in ("steps", "features", "hidden", "classes", "batch", "compute_ns"):
            given = getattr(self, name)
            if type(given) is not int or given < (name != "compute_ns"):
                raise ValueError(f"{name}: {given!r} is not a whole number of 1 or more")
        if type(self.rate) not in (int, float):
            raise ValueError(f"rate: {self.rate!r} is not a number")

    @cached_property
    def parameters(self) -> int:
        """The number of the model's parameters: weights and biases of two layers."""
        return self._ends[-1]

    @property
    def elements(self) -> int:
        return self.steps * self.parameters

    @cached_property
    def buckets(self) -> tuple[Bucket, ...]:
        """One Bucket for each step: the part of the tensor that the step's gradient has."""
        size = self.parameters
        return tuple(Bucket(step * size, size, step, step, 0) for step in range(self.steps))

    @cached_property
    def example(self) -> np.dtype:
        """The dtype of one training example."""
        return np.dtype([("x", "f8", (self.features,)), ("label", "i8")])

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns the worker's examples: an array of dtype `example` and shape (steps * batch,)."""
        return self._examples(key.seed, key.job, (key.rank, key.round), self.steps * self.batch)

    def held_out(self, seed: int, job: int) -> NDArray[np.void]:
        """Returns the examples on which the testbed evaluates models. No worker has them."""
        return self._examples(seed, job, (HELD_OUT,), HELD_OUT_EXAMPLES)

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.full(self.elements, 1, dtype_of(self.dtype))

    def examples_of(self, step: int, inputs: NDArray[Any]) -> NDArray[Any]:
        """Returns the examples of one step. inputs: all examples of the worker."""
        return inputs[step * self.batch : (step + 1) * self.batch]

    def first_model(self) -> Array:
        """Returns the initial model, flat, of shape (parameters,). It is the same in every training
        run."""
        model = _uniform((MODEL,), self.parameters)
        for (start, end), inputs in zip(pairwise(self._ends), self._fan_in, strict=True):
            model[start:end] *= np.sqrt(6 / inputs) if inputs else 0.0
        return model

    def gradient(self, model: Array, examples: NDArray[Any]) -> NDArray[Any]:
        """Returns the mean gradient over the examples, of `dtype` and of shape (parameters,)."""
        x, labels = examples["x"], examples["label"]
        first, _, second, _ = self._layers(model)
        hidden, chances = self._forward(model, x)
        chances[np.arange(len(x)), labels] -= 1.0
        chances /= len(x)
        back = np.where(hidden > 0, chances @ second.T, 0.0)
        parts = (x.T @ back, back.sum(axis=0), hidden.T @ chances, chances.sum(axis=0))
        assert parts[0].shape == first.shape
        flat = np.concatenate([part.reshape(-1) for part in parts])
        return cast(flat, dtype_of(self.dtype))

    def moved(self, model: Array, summed: NDArray[Any], workers: int) -> Array:
        """Returns the model after a step. model: the model before it. summed: the sum of the
        gradients of `workers` workers."""
        after: Array = model - self.rate / workers * numbers(summed).astype(np.float64)
        return after

    def judged(self, model: Array, examples: NDArray[Any]) -> tuple[float, float]:
        """Returns the mean cross-entropy of a model on examples, and the share of examples for
        which it gives the right class the highest probability."""
        _, chances = self._forward(model, examples["x"])
        right = chances[np.arange(len(examples)), examples["label"]]
        accuracy = float(np.mean(np.argmax(chances, axis=1) == examples["label"]))
        return float(-np.log(np.maximum(right, 1e-300)).mean()), accuracy

    def iteration_ns(self, times_ns: Sequence[float]) -> float:
        """Returns how long a training takes. times_ns: how long the all-reduce of each step
        takes."""
        return sum(times_ns) + self.steps * self.compute_ns

    def all_reduces(self) -> tuple[Dense, ...]:
        """Returns the workloads of the all-reduces of a round, in the order of `buckets`."""
        return (Dense(self.parameters, self.dtype),) * self.steps

    def as_dense(self) -> Dense:
        """Returns a workload with the same values in a single all-reduce. The endpoint that sums
        the gradients is made with this workload."""
        return Dense(self.elements, self.dtype)

    @property
    def _fan_in(self) -> tuple[int, ...]:
        """The fan-in of the weights and biases of both layers. It stands as 0 for biases, which
        begin at 0."""
        return self.features, 0, self.hidden, 0

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """The offsets in the model at which the weights and biases of each layer begin, and the
        length of the model."""
        sizes = (
            *(self.features * self.hidden, self.hidden),
            *(self.hidden * self.classes, self.classes),
        )
        return tuple(sum(sizes[:count]) for count in range(len(sizes) + 1))

    def _layers(self, model: Array) -> list[Array]:
        shapes = (
            *((self.features, self.hidden), (self.hidden,)),
            *((self.hidden, self.classes), (self.classes,)),
        )
        cuts = pairwise(self._ends)
        return [model[a:b].reshape(shape) for (a, b), shape in zip(cuts, shapes, strict=True)]

    def _forward(self, model: Array, x: Array) -> tuple[Array, Array]:
        """Returns the values of the hidden layer, and the probability of each class."""
        first, first_bias, second, second_bias = self._layers(model)
        hidden = np.maximum(x @ first + first_bias, 0.0)
        scores = hidden @ second + second_bias
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return hidden, chances

    def _examples(self, seed: int, job: int, own: tuple[int, ...], count: int) -> NDArray[np.void]:
        centres = _uniform((seed, job, CENTRES), self.classes * self.features)
        found = np.zeros(count, self.example)
        labels = _generator(seed, job, *own, LABELS).random_raw(count)
        found["label"] = labels % np.uint64(self.classes)
        noise = _uniform((seed, job, *own, NOISE), count * self.features * NOISE_OF)
        noise = noise.reshape(count, self.features, NOISE_OF).sum(axis=2) * SPREAD / 2
        found["x"] = centres.reshape(self.classes, self.features)[found["label"]] + noise
        return found


def _uniform(key: tuple[int, ...], count: int) -> Array:
    """Returns random numbers from -1 to just below 1."""
    raw = _generator(*key).random_raw(count) >> np.uint64(11)
    return np.ldexp(raw.astype(np.float64), -52) - 1.0


def _generator(*key: int) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence(key))
