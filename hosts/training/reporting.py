"""Functions by which a script reports its progress to the testbed. This module does not import
PyTorch, except to make the digest of a model."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from agglab.hosts.training.client import connect
from agglab.hosts.training.environment import SOCKET

DIGEST_BYTES = 16


def report(**values: Any) -> bool:
    """Tells the testbed of numbers and short texts, by name: `report(step=3, loss=loss, epoch=1)`.
    Returns whether an agent was told: outside the testbed there is none.

    A tensor or an array of one number counts as that number. A module (`parameters=model`) counts
    as a digest of its parameters and buffers; digests are equal if these are equal bit for bit.
    Raises ProtocolError (a ValueError) for other values, also for Inf and NaN, and TrainingError if
    the agent has ended.
    """
    if not os.environ.get(SOCKET):
        return False
    connect().report({name: _told(value) for name, value in values.items()})
    return True


def digest(module: Any) -> str:
    """Returns a hexadecimal digest of all names, types, shapes and bytes in a module's
    `state_dict()`."""
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
