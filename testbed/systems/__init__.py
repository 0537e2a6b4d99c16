"""Finds systems by name. Each package in this folder has an object `SYSTEM` of a subclass of
System. This module imports a package only when its system is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from agglab.testbed.schema.system_names import (
    UnknownSystem,
    built_in,
    default,
    loaded,
    located,
    names,
)
from agglab.testbed.systems.base import System

if TYPE_CHECKING:
    from agglab.testbed.schema.scenario import Scenario

__all__ = [
    "System",
    "UnknownSystem",
    "built_in",
    "default",
    "find",
    "in_virtual_time",
    "located",
    "names",
    "of",
    "sections",
]


def in_virtual_time(chosen: Iterable[str]) -> list[str]:
    """Returns those of these systems that run in virtual time."""
    return [name for name in chosen if "virtual" in find(name).abilities.clocks]


@cache
def find(spec: str) -> System:
    """Returns the system with the name `spec`. If `spec` is `/path/to/mine.py:Mine`, returns the
    system of class Mine in that file. The system's module is imported.

    Raises UnknownSystem.
    """
    try:
        made = loaded(spec)
    except UnknownSystem:
        raise
    except Exception as error:  # whatever the user's module does when it is imported
        raise UnknownSystem(f"{spec}: {type(error).__name__}: {error}") from error
    system = made() if isinstance(made, type) and issubclass(made, System) else made
    if not isinstance(system, System):
        raise UnknownSystem(f"{spec} is not a subclass of agglab.testbed.systems.base.System")
    return system


def of(scenario: Scenario) -> System:
    """Returns the system of a checked scenario."""
    return find(scenario.system)


def sections(chosen: System) -> dict[str, type]:
    """Returns the keys of every system whose section may be in a scenario, by the system's name.
    These are the systems of this folder, because one scenario may be run with several of them, and
    the chosen system."""
    all_systems = [*(find(name) for name in built_in()), chosen]
    return {system.name: system.options for system in all_systems if system.options}
