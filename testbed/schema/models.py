"""Reads models as tables of layers, from testbed/schema/models/*.yaml or from a file of the
user's own.

title: the model's name for people
source: where its architecture is from
samples: the number of samples of a worker in an iteration
p100_samples_per_s: how many samples one Tesla P100 trains in a second, where that is known
layers:  # from the input on: name, values, millions of operations of a forward pass of a sample
- [conv1, 23296, 140.555]
- [embedding, 1000000, 0, sparse]  # only the rows of a batch's words have a gradient
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "models"
PEAK_FLOPS = {"p100": 9.3e12, "v100": 15.7e12, "a100": 19.5e12, "h100": 66.9e12}
"""Operations per second in float32 according to the makers' data sheets, without tensor cores:
Tesla P100 and V100 for PCIe and NVLink, A100, H100 SXM."""
USUAL_SHARE = 0.5
"""The share of the peak that is assumed for a model whose speed is not known."""
BACKWARD = 2.0
"""How many times as long as a forward pass a backward pass takes. It computes the gradients of
inputs and of weights."""
NAMED = ("layers", "samples", "p100_samples_per_s", "source", "title")
VALUES_MAX = 10**10
LAYERS_MAX = 10_000
SPARSE = "sparse"


class ModelError(ValueError):
    """Raised if a model cannot be read. The message is one line."""


@dataclass(frozen=True)
class Layer:
    """One layer of a model. values: the number of values of its gradient. mflop: millions of
    operations in a forward pass of one sample."""

    name: str
    values: int
    mflop: float
    is_sparse: bool = False


@dataclass(frozen=True)
class Model:
    """A model as a table of layers. samples: the samples of one worker in an iteration.
    p100_samples_per_s: how many samples a Tesla P100 trains in a second; None if it is not
    known."""

    title: str
    source: str
    samples: int
    p100_samples_per_s: float | None
    layers: tuple[Layer, ...]

    @property
    def values(self) -> int:
        """The number of values of all layers."""
        return sum(layer.values for layer in self.layers)

    def computing_s(self, accelerator: str) -> float:
        """Returns how long one worker computes in an iteration, in seconds. If it is known how many
        samples a P100 trains in a second, that speed is scaled by the ratio of the peaks. Otherwise
        the accelerator is assumed to reach the fraction USUAL_SHARE of its peak."""
        flops = self._flop / (PEAK_FLOPS[accelerator] * USUAL_SHARE)
        if self.p100_samples_per_s is None:
            return self.samples * flops
        faster = PEAK_FLOPS[accelerator] / PEAK_FLOPS["p100"]
        return self.samples / (self.p100_samples_per_s * faster)

    @property
    def _flop(self) -> float:
        """The floating-point operations of a sample, in the forward and the backward pass
        together."""
        return sum(layer.mflop for layer in self.layers) * 1e6 * (1 + BACKWARD)

    def passes_s(self, accelerator: str) -> list[tuple[float, float]]:
        """Returns the seconds of the forward and the backward pass of each layer. The times of
        layers are proportional to their numbers of operations."""
        whole_s = self.computing_s(accelerator)
        each_s = [whole_s * layer.mflop * 1e6 / self._flop for layer in self.layers]
        return [(s, BACKWARD * s) for s in each_s]


def names() -> list[str]:
    """Returns the names of the models that come with Agglab."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find(given: str, folders: Iterable[Path]) -> str:
    """Returns the full path of a model's file, if one of the folders has it. A name of a model that
    comes with Agglab is returned unchanged, and so is a path that is not found."""
    if given in names():
        return given
    found = (folder / given for folder in folders if given and (folder / given).is_file())
    return str(next((path.resolve() for path in found), given))


@lru_cache(maxsize=64)
def read(name_or_path: str) -> Model:
    """Returns the model with this name or in this file. Raises ModelError."""
    path = FOLDER / f"{name_or_path}.yaml" if name_or_path in names() else Path(name_or_path)
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"there is no model {name_or_path}") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ModelError(f"{path}: {' '.join(str(error).split())}") from None
    try:
        return _model(given, path.stem)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _model(given: Any, name: str) -> Model:
    if not isinstance(given, dict) or (unknown := set(given) - set(NAMED)):
        what = "not a mapping" if not isinstance(given, dict) else f"unknown key {min(unknown)!r}"
        raise ModelError(f"{what}; its keys are {', '.join(NAMED)}")
    rows, speed = given.get("layers"), given.get("p100_samples_per_s")
    if not isinstance(rows, list) or not 1 <= len(rows) <= LAYERS_MAX:
        raise ModelError(f"layers: is not a list of 1 to {LAYERS_MAX} layers")
    layers = tuple(_layer(i, row) for i, row in enumerate(rows))
    if len({layer.name for layer in layers}) < len(layers):
        raise ModelError("layers: has the same name twice")
    if sum(layer.mflop for layer in layers) <= 0:
        raise ModelError("layers: no layer has any operations")
    return Model(
        title=str(given.get("title", name)),
        source=str(given.get("source", "")),
        samples=int(_number("samples", given.get("samples"), 1, 10**9)),
        p100_samples_per_s=None if speed is None else _number("p100_samples_per_s", speed, 1e-9),
        layers=layers,
    )


def _layer(index: int, row: Any) -> Layer:
    place = f"layers[{index}]"
    if not isinstance(row, Sequence) or isinstance(row, str) or not 3 <= len(row) <= 4:
        raise ModelError(
            f"{place}: is not [name, values, millions of operations], with or without `sparse`"
        )
    if len(row) == 4 and row[3] != SPARSE:
        raise ModelError(f"{place}: {row[3]!r} is not `{SPARSE}`")
    values = _number(f"{place}: values", row[1], 1, VALUES_MAX)
    if values != int(values):
        raise ModelError(f"{place}: values: {row[1]!r} is not a whole number")
    return Layer(str(row[0]), int(values), _number(f"{place}: operations", row[2], 0), len(row) > 3)


def _number(where: str, given: Any, least: float, most: float = 1e15) -> float:
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not least <= given <= most:
        raise ModelError(f"{where}: {given!r} is not a number from {least:g} to {most:g}")
    return given
