"""A system's contribution to its own verification, beside the methods that the testbed calls.

It lies in the system's place, `testbed/systems/<name>/verification/`: if that is a package, which
nothing of the testbed imports, it has a Proofs as `PROOFS`; a system without is tried by scenarios
alone. `mutants/*.yaml` in it are faults of that system (mutants/catalogue.py).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TextIO

from agglab.testbed import systems
from agglab.testbed.virtual import CompiledProgram
from agglab.verification.explore import walk


@dataclass(frozen=True)
class Proofs:
    """walks: makes worlds for the compiled program, beside models of the protocol, which `explore`
    moves. exhaust: (P4 program, steps, where to print) follows every order of events of small
    cases; raises walk.Wrong. script: makes, for a number of lanes, a packet test whose entries and
    frames `fuzz` starts from. options: draws the system's own keys, an object of its class
    `options`, for `explore`; without it schedules have their defaults."""

    walks: Callable[[CompiledProgram], walk.System[Any]] | None = None
    exhaust: Callable[[Path, int, TextIO], None] | None = None
    script: Callable[[int], str] | None = None
    options: Callable[[Random], object] | None = None


def folder(system: str) -> Path:
    """Returns the folder for it, whether it exists or not."""
    return Path(systems.__file__).parent / system / "verification"


def of(system: str) -> Proofs:
    """Returns the proofs of a system that comes with Agglab, by its name."""
    if not (folder(system) / "__init__.py").is_file():
        return Proofs()
    found = importlib.import_module(f"{systems.__name__}.{system}.verification").PROOFS
    assert isinstance(found, Proofs)
    return found
