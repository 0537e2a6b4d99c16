"""Two ways to use gradients: all of them at the end of the backward pass, or layer by layer when
the next forward pass needs them."""

from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from agglab.hosts.training import priority


class Averaged:
    """Training with a model whose backward pass ends when all gradients have been averaged."""

    def __init__(self, model: nn.Module, rate: float) -> None:
        self.forward = model
        self._optimiser = torch.optim.Adam(self.forward.parameters(), rate)

    def learn(self, loss: Tensor) -> None:
        """Performs the backward pass and changes the parameters."""
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()


class AtOnce(Averaged):
    """Training with PyTorch's DistributedDataParallel."""

    def __init__(self, model: nn.Module, rate: float) -> None:
        super().__init__(DistributedDataParallel(model), rate)


class LayerByLayer:
    """Training in which a layer waits for the average of its own gradients alone, at the beginning
    of its next forward pass. All other gradients may still be under way then. by_layer: whether the
    gradients of the first layers, which are needed first, overtake those of later layers."""

    def __init__(self, model: nn.Module, rate: float, by_layer: bool) -> None:
        self.forward = model
        self._works: dict[nn.Module, list[Any]] = defaultdict(list)
        layers = [each for each in model.modules() if list(each.parameters(recurse=False))]
        self._optimisers = {each: torch.optim.Adam(each.parameters(), rate) for each in layers}
        for place, layer in enumerate(layers):
            layer.register_forward_pre_hook(self._end)
            for parameter in layer.parameters():
                self._begin_when_there(parameter, layer, -place if by_layer else None)

    def learn(self, loss: Tensor) -> None:
        """Performs the backward pass. The parameters change later, layer by layer."""
        (loss / distributed.get_world_size()).backward()

    def _begin_when_there(self, parameter: Tensor, layer: nn.Module, urgency: int | None) -> None:
        def begin(_: Tensor) -> None:
            with nullcontext() if urgency is None else priority(urgency):
                self._works[layer].append(distributed.all_reduce(parameter.grad, async_op=True))

        parameter.register_post_accumulate_grad_hook(begin)

    def _end(self, layer: nn.Module, _: object) -> None:
        if works := self._works.pop(layer, None):
            for work in works:
                work.wait()
            self._optimisers[layer].step()
            self._optimisers[layer].zero_grad()
