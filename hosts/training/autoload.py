"""Lets PyTorch know the backend's name: the entry point `torch.backends`, which `import torch`
calls in every program of the environment. It never raises, whatever is missing, and imports
PyTorch's own `torch.distributed` alone: what a process group needs is imported when one is made.
"""

from __future__ import annotations

import contextlib
from typing import Any

from agglab.hosts.training.environment import BACKEND


def autoload() -> None:
    """The entry point."""
    with contextlib.suppress(Exception):
        register()


def register() -> None:
    """Make `dist.init_process_group("agglab")` known; may be called again."""
    from torch import distributed

    if distributed.is_available() and not hasattr(distributed.Backend, BACKEND.upper()):
        distributed.Backend.register_backend(BACKEND, _create, devices=["cpu"])


def _create(store: Any, rank: int, size: int, timeout: Any) -> Any:
    from agglab.hosts.training.backend import create

    return create(store, rank, size, timeout)
