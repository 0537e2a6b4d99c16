"""Functions by which a script reports its progress to the testbed. Does not import PyTorch, which a
model's parameters bring along."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from agglab.hosts.training.client import connect
from agglab.hosts.training.environment import SOCKET

DIGEST_BYTES = 16


def report(**values: Any) -> bool:
    """Tell the testbed of numbers and short texts, by name: `report(step=3, loss=loss, epoch=1)`.

    A tensor or an array of one number counts as that number, and a module (`parameters=model`) as a
    digest of its parameters and buffers, which is equal for those that are equal bit for bit.
    Returns whether an agent was told: a script that runs elsewhere reports to nobody. Raises
    ProtocolError (a ValueError) for anything else, Inf and NaN among it, and TrainingError if the
    agent has ended.
    """
    if not os.environ.get(SOCKET):
        return False
    connect().report({name: _told(value) for name, value in values.items()})
    return True


def digest(module: Any) -> str:
    """Hexadecimal, of all names, types, shapes and bytes in a module's `state_dict()`."""
    import torch

    found = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for name, tensor in module.state_dict().items():
        if not isinstance(tensor, torch.Tensor):
            continue
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        found.update(flat.view(torch.uint8).numpy())
    return found.hexdigest()


def _told(value: Any) -> Any:
    if hasattr(value, "state_dict"):
        return digest(value)
    return value.item() if hasattr(value, "item") else value
