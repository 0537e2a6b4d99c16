"""Training with PyTorch over any system. A training script asks the agent of its host for each
all-reduce, over a Unix socket and shared memory. See docs/training.md.

    protocol.py     the messages between script and agent, checked on both sides
    service.py      the agent's end: performs reductions in the order in which they were asked for
    client.py       the script's end, without PyTorch
    jobs.py         all-reduces and their pieces
    order.py        which piece is next, by a vote of all ranks if all-reduces have priorities
    priorities.py   `priority`
    reporting.py    `report`
    backend.py      `dist.init_process_group("agglab")`; needs PyTorch
    hook.py         a communication hook for a script that keeps another backend; needs PyTorch
    tensors.py      cuts tensors into reductions; needs PyTorch
    pool.py         threads for callbacks
    environment.py  the environment variables that a script gets
    torch.py        makes the backend's name known by an import, where the entry point does not
    autoload.py     lets PyTorch know the backend's name without an import

The public names for scripts are `report` and `priority`, and those of hook.py.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agglab.hosts.training.priorities import priority
    from agglab.hosts.training.reporting import report

__all__ = ["priority", "report"]

_MODULES = {"priority": "priorities", "report": "reporting"}
"""The module of each public name."""


def __getattr__(name: str) -> Any:
    """Imports a public name when it is used, so that importing the package imports no other module;
    see agglab.hosts."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
