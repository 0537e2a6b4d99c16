"""Training with PyTorch over any system. The process of a training script asks the agent of its
host for each all-reduce, over a Unix socket and shared memory. See docs/training.md.

    protocol.py     what the two say to each other, checked on both sides
    service.py      the agent's end: performs reductions in the order in which they were asked for
    client.py       the script's end, without PyTorch
    reporting.py    `report`
    backend.py      `dist.init_process_group("agglab")`; the only module that needs PyTorch, with
    hook.py         a communication hook for a script that keeps another backend
    environment.py  what a script finds in its environment
    torch.py        makes the backend's name known by an import, where the entry point does not
    autoload.py     lets PyTorch know the backend's name without an import

The public name for scripts is `report`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agglab.hosts.training.reporting import report

__all__ = ["report"]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is used; see agglab.hosts."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.reporting"), name)
