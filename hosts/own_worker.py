"""Loads and checks a worker class that a user has written: a subclass of AllReducer, named as
`module:Class`.

The class may have a static method `combine(inputs)`, for a switch program that does not add. Its
argument is a list with the values of each worker, as int64 or float64 arrays. It returns the
expected result, element by element. The testbed verifies results with it.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from agglab import hosts
from agglab.hosts.modules import load_module

if TYPE_CHECKING:
    from agglab.hosts import AllReducer

Combine = Callable[[Sequence[NDArray[Any]]], NDArray[Any]]
SAMPLE = (3, -2, 1)
ALLOWED = "module:Class, a subclass of hosts.AllReducer"
ONLY_COMBINE = "in virtual time only its `combine` can be its own"


class WorkerError(ValueError):
    """Raised if a worker class cannot be used. The message is one line."""


def find(spec: str, folders: Sequence[Path]) -> str:
    """Returns `spec` with the path of the module's file in place of the module's name, if one of
    the folders has this file. Otherwise returns `spec`."""
    module, _, name = spec.partition(":")
    relative = module if module.endswith(".py") else module.replace(".", "/") + ".py"
    for folder in folders:
        if os.path.isfile(folder / relative):
            return f"{(folder / relative).resolve()}:{name}"
    return spec


def declared(spec: str) -> frozenset[str]:
    """Returns the names of all methods that are defined by the class, or by its base classes in the
    same file. The module is parsed and not run.

    Raises WorkerError if the file has no such class, or if the class certainly is not a worker. A
    class that the file imports is not examined here; `load` does that.
    """
    if not spec:
        return frozenset()
    name, _, wanted = spec.rpartition(":")
    file = _source(name)
    if file is None:
        return frozenset()
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise WorkerError(f"{name}: {type(error).__name__}: {error}") from None
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    classes = {node.name: node for node in statements if isinstance(node, ast.ClassDef)}
    if wanted not in classes and _binds(statements, wanted):
        return frozenset()
    lineage = _lineage(classes, wanted)
    if lineage is None:
        raise _no_class(name, wanted, (c for c in classes if c != wanted and _lineage(classes, c)))
    bodies = (statement for each in lineage for statement in classes[each].body)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in bodies if isinstance(each, functions))


def _source(name: str) -> Path | None:
    """Returns the path of the module's file, or None if it is not a Python source file. Nothing is
    imported."""
    if name.endswith(".py"):
        return Path(name)
    found: ModuleSpec | None = None
    words = name.split(".")
    for count in range(1, len(words) + 1):
        inside = found.submodule_search_locations if found else None
        module = ".".join(words[:count])
        finders = (finder.find_spec(module, inside) for finder in sys.meta_path)
        found = next((spec for spec in finders if spec), None)
        if found is None:
            raise WorkerError(f"{name}: ModuleNotFoundError: No module named {module!r}")
    assert found is not None
    return Path(found.origin) if found.origin and found.origin.endswith(".py") else None


def _binds(statements: Sequence[ast.stmt], name: str) -> bool:
    """Returns whether one of the statements is an import or an assignment that may give the name a
    value."""
    for node in statements:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((each.asname or each.name) in (name, "*") for each in node.names):
                return True
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                return True
    return False


def _lineage(classes: Mapping[str, ast.ClassDef], name: str) -> list[str] | None:
    """Returns the names of the class and of its base classes in the same file. Returns None if the
    file lacks the class. Also returns None if all its base classes are builtins or in the file,
    because then it cannot be a subclass of AllReducer."""
    seen, waiting, outside = [], [name], False
    while waiting:
        each = waiting.pop()
        if each not in classes or each in seen:
            outside = outside or (each not in classes and not hasattr(builtins, each))
            continue
        seen.append(each)
        for base in classes[each].bases:
            waiting.append(base.id if isinstance(base, ast.Name) else ast.unparse(base))
    return seen if seen and outside else None


def load(spec: str) -> type[AllReducer]:
    """Returns the class that `spec` names: `module:Class` or `/path/to/file.py:Class`. Returns
    AllReducer if `spec` is empty.

    Runs the module. Raises WorkerError if the result is not a subclass of AllReducer.
    """
    if not spec:
        return usual()
    name, _, wanted = spec.rpartition(":")
    try:
        module = load_module(name)
    except Exception as error:  # whatever a user's module does
        raise WorkerError(f"{name}: {type(error).__name__}: {error}") from error
    found = getattr(module, wanted, None)
    if not _is_worker(found):
        own = (each for each, value in vars(module).items() if _is_worker(value))
        raise _no_class(name, wanted, (each for each in own if each != usual().__name__))
    return found


def usual() -> type[AllReducer]:
    """Returns the class from which every worker class is derived."""
    return hosts.AllReducer


def _no_class(name: str, wanted: str, others: Iterable[str]) -> WorkerError:
    what = f"{name} has no class {wanted} that is a subclass of hosts.AllReducer"
    known = ", ".join(others)
    return WorkerError(f"{what}; it has {known}" if known else what)


def _is_worker(value: Any) -> TypeGuard[type[AllReducer]]:
    return isinstance(value, type) and issubclass(value, usual())


def combine_of(spec: str) -> Combine | None:
    """Returns the function `combine` of the class, or None if the class has none, because the
    switch adds. The returned function raises WorkerError if the result is not an array of numbers
    like the inputs."""
    own = getattr(load(spec), "combine", None)
    return partial(_combined, spec, own) if own else None


def try_combine(spec: str, dtype: str) -> None:
    """Raises WorkerError if the class's `combine` fails on a few values of two workers."""
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
        wanted = inputs[0].shape
        raise WorkerError(f"{name} returned shape {made.shape}; it must be {wanted}")
    if made.dtype.kind not in ("iuf" if inputs[0].dtype.kind == "f" else "iu"):
        allowed = "an integer or float" if inputs[0].dtype.kind == "f" else "an integer"
        raise WorkerError(f"{name} returned dtype {made.dtype}; it must be {allowed} type")
    return made
