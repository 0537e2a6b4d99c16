"""A worker of one's own: a subclass of AllReducer, named as `module:Class`.

The class may have a static method `combine(inputs)`, where the switch's program does not add: it is
given all workers' values, a list of int64 or float64 arrays, and returns what becomes of them,
element by element. Results are verified with it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

from numpy.typing import NDArray

from hosts.all_reduce import AllReducer

Combine = Callable[[Sequence[NDArray[Any]]], NDArray[Any]]


def find(spec: str, folders: Sequence[Path]) -> str:
    """`spec` with the module's file instead of its name, if one of the folders has it."""
    module, _, name = spec.partition(":")
    relative = module if module.endswith(".py") else module.replace(".", "/") + ".py"
    for folder in folders:
        if (folder / relative).is_file():
            return f"{(folder / relative).resolve()}:{name}"
    return spec


def load(spec: str) -> type[AllReducer]:
    """The class of `module:Class` or `/path/to/file.py:Class`; AllReducer for an empty one.

    Runs the module. Raises ValueError, in one line, if that does not give a subclass of AllReducer.
    """
    if not spec:
        return AllReducer
    name, _, wanted = spec.rpartition(":")
    try:
        module = _module(name)
    except Exception as error:  # whatever a user's module does
        raise ValueError(f"{name}: {type(error).__name__}: {error}") from error
    found = getattr(module, wanted, None)
    if not _is_worker(found):
        own = (each for each, value in vars(module).items() if _is_worker(value))
        others = ", ".join(each for each in own if each != AllReducer.__name__)
        what = f"{name} has no class {wanted} that is a subclass of hosts.AllReducer"
        raise ValueError(f"{what}; it has {others}" if others else what)
    return found


def _is_worker(value: Any) -> TypeGuard[type[AllReducer]]:
    return isinstance(value, type) and issubclass(value, AllReducer)


def combine_of(spec: str) -> Combine | None:
    """The class's own `combine`; None where the switch adds."""
    return getattr(load(spec), "combine", None)


def _module(name: str) -> ModuleType:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    path = Path(name)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # what it imports may lie beside it
    loading = importlib.util.spec_from_file_location(f"own_worker_{path.stem}", path)
    assert loading is not None and loading.loader is not None
    module = importlib.util.module_from_spec(loading)
    loading.loader.exec_module(module)
    return module
