"""Finds the systems that a scenario can name: those of systems/, those that installed packages
provide as entry points of the group `agglab.systems`, and a class in a user's own file.

This module imports a system only when it is asked for one, and does not depend on what a system is.
Therefore the keys of a scenario can take their default from here. `testbed.systems.find` checks
what this module returns.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from agglab.hosts.modules import load_module

GROUP = "agglab.systems"
PACKAGE = "agglab.systems"
"""The package of the systems that come with Agglab, which the testbed finds by their names."""
OWN = ".py:"
"""The separator of file and class in the name of a system that is a class in a file. It includes
the file's suffix."""


class UnknownSystem(ValueError):
    """Raised if a system does not exist or cannot be used. The message is one line."""


def names() -> list[str]:
    """Returns the names of all systems that can be named without a path."""
    return sorted({*built_in(), *(point.name for point in metadata.entry_points(group=GROUP))})


def built_in() -> list[str]:
    """Returns the systems that come with Agglab: the folders of systems/ with a `system.py`."""
    (home,) = importlib.import_module(PACKAGE).__path__
    return sorted(path.parent.name for path in Path(home).glob("*/system.py"))


@cache
def default() -> str:
    """Returns the system of systems/ that declares itself the default."""
    (name,) = (name for name in built_in() if loaded(name).is_default)
    return name


def located(spec: str, folders: Sequence[Path]) -> str:
    """Returns `path/to/mine.py:Mine` with the file's full path, if the file is in one of the
    folders. A name is returned unchanged."""
    path, _, wanted = spec.rpartition(":")
    for folder in folders if OWN in spec else ():
        if (folder / path).is_file():
            return f"{(folder / path).resolve()}:{wanted}"
    return spec


def loaded(spec: str) -> Any:
    """Returns the object that a name or `/path/to/mine.py:Mine` stands for. Its module is imported.
    Raises UnknownSystem, and any error that the module raises."""
    return _of_file(spec) if OWN in spec else _named(spec)


def endpoint_beside(system: type) -> str:
    """Returns the module `endpoint.py` beside the module of the class, or of a class from which it
    is derived: its name, or its path if it is in a user's folder. Raises LookupError."""
    for each in system.__mro__:
        module = sys.modules[each.__module__]
        file = Path(getattr(module, "__file__", "") or "").with_name("endpoint.py")
        if file.is_file():
            is_ours = module.__name__.startswith(f"{PACKAGE}.")
            return f"{module.__package__}.endpoint" if is_ours else str(file)
    raise LookupError(f"{system.__name__}: no endpoint.py beside its module, and no `endpoints`")


def _named(name: str) -> Any:
    if name in built_in():
        return importlib.import_module(f"{PACKAGE}.{name}.system").SYSTEM
    for point in metadata.entry_points(group=GROUP):
        if point.name == name:
            return point.load()
    raise UnknownSystem(f"unknown system {name!r}")


def _of_file(spec: str) -> Any:
    path, _, wanted = spec.rpartition(":")
    if not Path(path).is_file():
        raise UnknownSystem(f"{path}: no such file")
    module = load_module(path)
    if not hasattr(module, wanted):
        raise UnknownSystem(f"{path} has no {wanted}")
    return getattr(module, wanted)
