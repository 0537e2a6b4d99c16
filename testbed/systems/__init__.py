"""Finds systems by name: those of this folder, those that installed packages provide as entry
points of the group `agglab.systems`, and a class in a user's own file.

A package of this folder, or the object that an entry point names, is a System or its class. This
module imports none of them until it is asked to, so that `scenario` can import this module.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agglab.testbed.systems.base import System

if TYPE_CHECKING:
    from agglab.testbed.scenario import Scenario

GROUP = "agglab.systems"
OWN = ".py:"
"""Separates the file from the class in the name of a system that is a class in a file."""


class UnknownSystem(ValueError):
    """A system does not exist or cannot be used; the message is one line."""


def names() -> list[str]:
    """Returns all systems that can be given by name."""
    return sorted({*built_in(), *(point.name for point in metadata.entry_points(group=GROUP))})


def built_in() -> list[str]:
    """Returns the systems of this folder."""
    folder = Path(__file__).parent
    return sorted(path.parent.name for path in folder.glob("*/system.py"))


def in_virtual_time(chosen: Iterable[str]) -> list[str]:
    """Returns those of these systems that run in virtual time."""
    return [name for name in chosen if "virtual" in find(name).abilities.clocks]


@cache
def default() -> str:
    """Returns the system of this folder that declares itself the default."""
    (name,) = (name for name in built_in() if find(name).is_default)
    return name


def located(spec: str, folders: Sequence[Path]) -> str:
    """Returns `path/to/mine.py:Mine` with the file's full path, if one of the folders has it; a
    name is returned unchanged."""
    path, _, wanted = spec.rpartition(":")
    for folder in folders if OWN in spec else ():
        if (folder / path).is_file():
            return f"{(folder / path).resolve()}:{wanted}"
    return spec


@cache
def find(spec: str) -> System:
    """Returns the system of that name, or of `/path/to/mine.py:Mine`. Imports its module.

    Raises UnknownSystem.
    """
    try:
        made = _of_file(spec) if OWN in spec else _named(spec)
    except UnknownSystem:
        raise
    except Exception as error:  # whatever the user's module does when it is imported
        raise UnknownSystem(f"{spec}: {type(error).__name__}: {error}") from error
    system = made() if isinstance(made, type) and issubclass(made, System) else made
    if not isinstance(system, System):
        raise UnknownSystem(f"{spec} is not a subclass of agglab.testbed.systems.base.System")
    return system


def of(scenario: Scenario) -> System:
    """Returns a checked scenario's system."""
    return find(scenario.system)


def sections(chosen: System) -> dict[str, type]:
    """Returns name -> keys of every system whose section may be in a scenario: those of this
    folder, because one scenario may be run with several systems, and the chosen one."""
    all_systems = [*(find(name) for name in built_in()), chosen]
    return {system.name: system.options for system in all_systems if system.options}


def _named(name: str) -> Any:
    if name in built_in():
        return importlib.import_module(f"{__name__}.{name}").SYSTEM
    for point in metadata.entry_points(group=GROUP):
        if point.name == name:
            return point.load()
    raise UnknownSystem(f"unknown system {name!r}")


def _of_file(spec: str) -> Any:
    path, _, wanted = spec.rpartition(":")
    name = f"agglab_system_{Path(path).stem}"
    described = importlib.util.spec_from_file_location(name, path)
    if described is None or described.loader is None or not Path(path).is_file():
        raise UnknownSystem(f"{path}: no such file")
    module = importlib.util.module_from_spec(described)
    sys.modules[name] = module  # where dataclasses look their annotations up
    if str(Path(path).parent) not in sys.path:
        sys.path.append(str(Path(path).parent))  # what it imports may lie beside it
    described.loader.exec_module(module)
    if not hasattr(module, wanted):
        raise UnknownSystem(f"{path} has no {wanted}")
    return getattr(module, wanted)
