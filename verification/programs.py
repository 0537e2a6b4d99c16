"""The P4 programs of systems, compiled at sizes that their tests choose."""

from __future__ import annotations

from pathlib import Path

from agglab.testbed import systems
from agglab.testbed.paths import P4_FOLDER
from agglab.testbed.program import Program, compile_program
from agglab.testbed.scenario.schema import Scenario, Switch
from agglab.testbed.systems.base import Source


def source(system: str, lanes: int, slots: int) -> Source:
    """Returns the name and the compile-time parameters of the one program that a system's switches
    run."""
    found = systems.find(system)
    own = ((found.name, found.options()),) if found.options else ()
    switch = Switch(lanes=lanes, slots=slots)
    (only,) = found.sources(Scenario(system=system, options=own, switch=switch)).values()
    return only


def path(system: str) -> Path:
    """Returns the system's P4 file, which does not depend on the sizes."""
    return P4_FOLDER / f"{source(system, lanes=1, slots=1).name}.p4"


def compiled(system: str, lanes: int, slots: int, compiler: str = "agglab") -> Program:
    """Compiles a system's program with one of the compilers of `switch.compiler`. Raises the same
    errors as compile_program."""
    return compile_program(path(system), compiler, source(system, lanes, slots).parameters)
