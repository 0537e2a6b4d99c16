"""Lets PyTorch know the backend's name: the entry point `torch.backends`, which `import torch`
calls in every program of the environment. It never raises, whatever is missing, and imports
PyTorch's own `torch.distributed` alone: what a process group needs is imported when one is made.
"""

from __future__ import annotations

import contextlib
import os
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agglab.hosts.training.environment import BACKEND

ENTRY_POINTS_FROM = (2, 5)
"""The release of PyTorch that calls entry points for the first time."""
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
"""PyTorch's own variable: 0 has it call none."""


def autoload() -> None:
    """The entry point."""
    with contextlib.suppress(Exception):
        register()


def register() -> None:
    """Make `dist.init_process_group("agglab")` known; may be called again."""
    from torch import distributed

    if distributed.is_available() and not hasattr(distributed.Backend, BACKEND.upper()):
        distributed.Backend.register_backend(BACKEND, _create, devices=["cpu"])


def register_where_needed() -> None:
    """Does what the entry point does, in an environment whose PyTorch calls no entry points:
    releases before 2.5. Elsewhere nothing is imported."""
    with contextlib.suppress(PackageNotFoundError):
        release = tuple(map(int, re.findall(r"\d+", version("torch"))[:2]))
        if release < ENTRY_POINTS_FROM and os.environ.get(AUTOLOAD, "1") == "1":
            register()


def _create(store: Any, rank: int, size: int, timeout: Any) -> Any:
    from agglab.hosts.training.backend import create

    return create(store, rank, size, timeout)
