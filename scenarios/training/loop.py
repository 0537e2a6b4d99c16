"""The common part of the training scripts: data-parallel training with PyTorch.

Only three things are specific to Agglab: the reports, the name of the backend, which the option
`--backend` replaces, and the priorities of the option `--overlap by-layer` (overlap.py). All random
numbers have a seed, so that two runs differ only in their reductions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Protocol

import torch
from overlap import AtOnce, LayerByLayer
from torch import Tensor, distributed, nn

from agglab.hosts.training import report

Batch = tuple[Tensor, Tensor]


class Way(Protocol):
    """A way of training (overlap.py)."""

    forward: nn.Module

    def learn(self, loss: Tensor) -> None: ...


def arguments(**defaults: float) -> argparse.Namespace:
    """Returns the arguments of the command line: the backend, overlap (whether the next forward
    pass begins before all gradients are averaged, and whether those of the first layers come
    first), epochs, batch (the number of examples in a batch of one rank), rate and seed. defaults:
    values that replace the usual defaults, and further arguments."""
    usual = {"epochs": 3, "batch": 48, "rate": 0.001, "seed": 1, **defaults}
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="agglab")
    parser.add_argument("--overlap", choices=["none", "in-order", "by-layer"], default="none")
    for name, value in usual.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser.parse_args()


class Examples:
    """Inputs and their targets. In each epoch, they are put into a new random order and divided
    among the ranks."""

    def __init__(self, inputs: Tensor, targets: Tensor, batch: int, seed: int) -> None:
        self._inputs, self._targets, self._batch, self._seed = inputs, targets, batch, seed

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Yields the batches of this rank. All ranks have the same number of batches, and examples
        that do not fill a batch are left out."""
        order = torch.Generator().manual_seed(self._seed * 1000 + epoch)
        places = torch.randperm(len(self._inputs), generator=order)
        rank, ranks = distributed.get_rank(), distributed.get_world_size()
        for begin in range(0, len(places) - self._batch * ranks + 1, self._batch * ranks):
            own = places[begin + rank * self._batch :][: self._batch]
            yield self._inputs[own], self._targets[own]


def train(
    model: nn.Module,
    examples: Examples,
    accuracy: Callable[[nn.Module], float],
    asked: argparse.Namespace,
) -> None:
    """Trains the model for all epochs, with the optimizer Adam and the cross-entropy loss. Joins
    the other ranks first, and reports every step and every epoch."""
    distributed.init_process_group(asked.backend)
    way: Way
    if asked.overlap == "none":
        way = AtOnce(model, asked.rate)
    else:
        way = LayerByLayer(model, asked.rate, asked.overlap == "by-layer")
    learn(model, way, examples, accuracy, asked)
    report(parameters=model)
    distributed.destroy_process_group()


def learn(
    model: nn.Module,
    way: Way,
    examples: Examples,
    accuracy: Callable[[nn.Module], float],
    asked: argparse.Namespace,
) -> None:
    """Trains the model for all epochs, and reports every step and every epoch."""
    step = 0
    for epoch in range(1, asked.epochs + 1):
        for inputs, targets in examples.batches(epoch):
            loss = nn.functional.cross_entropy(way.forward(inputs), targets)
            way.learn(loss)
            step += 1
            report(step=step, loss=loss.item())
        with torch.no_grad():
            report(epoch=epoch, loss=loss.item(), accuracy=accuracy(model))


def share_right(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """Returns the share of the examples, from 0 to 1, whose class the model predicts correctly."""
    return (model(inputs).argmax(1) == targets).float().mean().item()
