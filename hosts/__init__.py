"""Worker agents: programs on the hosts that all-reduce NumPy arrays through an aggregating switch.

This module offers the public names; see docs/hosts.md. AllReducer belongs to the default system and
lies in its folder; all else in this folder is for any system, and imports only NumPy,
p4native.common and itself; training/ also needs PyTorch. A name is imported only when it is used.
The reason: `import torch` imports this package for the name of the backend (training/autoload.py),
and this must not fail where NumPy is broken.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agglab.hosts.errors import AllReduceError, NotFinite, RoundTimeout, ShapeMismatch
    from agglab.systems.switchml.all_reducer import AllReducer

__all__ = ["AllReduceError", "AllReducer", "NotFinite", "RoundTimeout", "ShapeMismatch"]
HOMES = {"AllReducer": "agglab.systems.switchml.all_reducer"}
"""The modules of the names that are not in `errors`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES.get(name, f"{__name__}.errors")), name)
