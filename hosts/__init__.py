"""Worker agents: programs on the hosts that all-reduce NumPy arrays through an aggregating switch.

This module offers the public names; see docs/hosts.md. This folder imports only NumPy,
p4native.common and itself; training/ also needs PyTorch. A name is imported only when it is used.
The reason: `import torch` imports this package for the name of the backend (training/autoload.py),
and this must not fail where NumPy is broken.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agglab.hosts.all_reduce import AllReducer
    from agglab.hosts.errors import AllReduceError, NotFinite, RoundTimeout, ShapeMismatch

__all__ = ["AllReduceError", "AllReducer", "NotFinite", "RoundTimeout", "ShapeMismatch"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "all_reduce" if name == "AllReducer" else "errors"
    return getattr(import_module(f"{__name__}.{home}"), name)
