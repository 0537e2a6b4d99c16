"""A worker of one's own: a subclass of AllReducer, named as `module:Class`.

The class may have a static method `combine(inputs)`, where the switch's program does not add: it is
given all workers' values, a list of int64 or float64 arrays, and returns what becomes of them,
element by element. Results are verified with it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from hosts.all_reduce import AllReducer

Combine = Callable[[Sequence[NDArray[Any]]], NDArray[Any]]
SAMPLE = (3, -2, 1)


class WorkerError(ValueError):
    """A worker class that cannot be used: one line."""


def find(spec: str, folders: Sequence[Path]) -> str:
    """`spec` with the module's file instead of its name, if one of the folders has it."""
    module, _, name = spec.partition(":")
    relative = module if module.endswith(".py") else module.replace(".", "/") + ".py"
    for folder in folders:
        if os.path.isfile(folder / relative):
            return f"{(folder / relative).resolve()}:{name}"
    return spec


def load(spec: str) -> type[AllReducer]:
    """The class of `module:Class` or `/path/to/file.py:Class`; AllReducer for an empty one.

    Runs the module. Raises WorkerError if that does not give a subclass of AllReducer.
    """
    if not spec:
        return AllReducer
    name, _, wanted = spec.rpartition(":")
    try:
        module = _module(name)
    except Exception as error:  # whatever a user's module does
        raise WorkerError(f"{name}: {type(error).__name__}: {error}") from error
    found = getattr(module, wanted, None)
    if not _is_worker(found):
        own = (each for each, value in vars(module).items() if _is_worker(value))
        others = ", ".join(each for each in own if each != AllReducer.__name__)
        what = f"{name} has no class {wanted} that is a subclass of hosts.AllReducer"
        raise WorkerError(f"{what}; it has {others}" if others else what)
    return found


def _is_worker(value: Any) -> TypeGuard[type[AllReducer]]:
    return isinstance(value, type) and issubclass(value, AllReducer)


def combine_of(spec: str) -> Combine | None:
    """The class's own `combine`; None where the switch adds. What it makes is checked: it raises
    WorkerError for anything but an array of numbers like the given ones."""
    own = getattr(load(spec), "combine", None)
    return partial(_combined, spec, own) if own else None


def try_combine(spec: str, dtype: str) -> None:
    """Raise WorkerError if the class's `combine` fails on a few values of two workers."""
    combine = combine_of(spec)
    if combine:
        sample = np.array(SAMPLE, np.float64 if dtype == "float32" else np.int64)
        combine([sample, sample[::-1]])


def _combined(spec: str, own: Combine, inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
    name = f"{spec}: combine"
    try:
        made = np.asarray(own(inputs))
    except Exception as error:  # whatever a user's function does
        hint = " (it needs @staticmethod)" if "positional argument" in str(error) else ""
        raise WorkerError(f"{name}: {type(error).__name__}: {error}{hint}") from error
    if made.shape != inputs[0].shape:
        raise WorkerError(f"{name} made {made.shape} of arrays {inputs[0].shape}")
    if made.dtype.kind not in ("iuf" if inputs[0].dtype.kind == "f" else "iu"):
        raise WorkerError(f"{name} made {made.dtype} of {inputs[0].dtype}")
    return made


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
