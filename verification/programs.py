"""Finds the P4 program of a system and compiles it, with the numbers of lanes and slots that a test
chooses."""

from __future__ import annotations

from pathlib import Path

from agglab.testbed import systems
from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.run.programs.program import Program, compile_program
from agglab.testbed.schema.network_sections import Switch
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.systems.base import Source


def source(system: str, lanes: int, slots: int) -> Source:
    """Returns the name and the compile-time parameters of the P4 program that the system's switches
    run. The system must have only one."""
    found = systems.find(system)
    own = ((found.name, found.options()),) if found.options else ()
    switch = Switch(lanes=lanes, slots=slots)
    (only,) = found.sources(Scenario(system=system, options=own, switch=switch)).values()
    return only


def path(system: str) -> Path:
    """Returns the path of the system's P4 file, which is the same for all lanes and slots."""
    return P4_FOLDER / f"{source(system, lanes=1, slots=1).name}.p4"


def compiled(system: str, lanes: int, slots: int, compiler: str = "agglab") -> Program:
    """Compiles a system's program. compiler: a value of `switch.compiler`. Raises the same errors
    as compile_program."""
    return compile_program(path(system), compiler, source(system, lanes, slots).parameters)
