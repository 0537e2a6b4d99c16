"""Makes the backend's name known to PyTorch. The function `autoload` is an entry point of the group
`torch.backends`, which `import torch` calls in every program of the environment. So it never raises
an exception, whatever is missing. Of PyTorch it imports only `torch.distributed`. The modules that
a process group needs are imported when one is made."""

from __future__ import annotations

import contextlib
import os
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agglab.hosts.training.environment import BACKEND

ENTRY_POINTS_FROM = (2, 5)
"""The first release of PyTorch that calls entry points."""
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
"""An environment variable of PyTorch. If it is 0, PyTorch calls no entry points."""


def autoload() -> None:
    """Registers the backend and ignores all errors. PyTorch calls this function as an entry
    point."""
    with contextlib.suppress(Exception):
        register()


def register() -> None:
    """Makes `dist.init_process_group("agglab")` known to PyTorch. May be called again."""
    from torch import distributed

    if distributed.is_available() and not hasattr(distributed.Backend, BACKEND.upper()):
        distributed.Backend.register_backend(BACKEND, _create, devices=["cpu"])


def register_where_needed() -> None:
    """Registers the backend if PyTorch is older than 2.5 and so calls no entry points. With later
    releases, or if TORCH_DEVICE_BACKEND_AUTOLOAD is set to something other than 1, does nothing and
    does not import PyTorch."""
    with contextlib.suppress(PackageNotFoundError):
        release = tuple(map(int, re.findall(r"\d+", version("torch"))[:2]))
        if release < ENTRY_POINTS_FROM and os.environ.get(AUTOLOAD, "1") == "1":
            register()


def _create(store: Any, rank: int, size: int, timeout: Any) -> Any:
    from agglab.hosts.training.backend import create

    return create(store, rank, size, timeout)
