"""A system's contribution to its own verification, besides the methods that the testbed calls.

It is in `testbed/systems/<name>/verification/`. If that is a package, which nothing of the testbed
imports, it has an object `PROOFS` of class Proofs. A system without one is only tried by scenarios.
The files `mutants/*.yaml` in the same folder are faults of that system (mutants/catalogue.py).
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
    """The contribution of one system.

    walks: makes worlds for the compiled program, with models of the protocol, which `explore`
    moves. exhaust: tries every order of events of small cases, given (P4 program, steps, where to
    print), and raises walk.Wrong. script: makes, for a number of lanes, a packet test whose entries
    and frames `fuzz` starts from. options: draws the system's own keys for `explore`, as an object
    of the system's class `options`. Without it, schedules use the default values.
    """

    walks: Callable[[CompiledProgram], walk.System[Any]] | None = None
    exhaust: Callable[[Path, int, TextIO], None] | None = None
    script: Callable[[int], str] | None = None
    options: Callable[[Random], object] | None = None


def folder(system: str) -> Path:
    """Returns the folder of a system's contribution, whether it exists or not."""
    return Path(systems.__file__).parent / system / "verification"


def of(system: str) -> Proofs:
    """Returns the proofs of a system that comes with Agglab, by its name."""
    if not (folder(system) / "__init__.py").is_file():
        return Proofs()
    found = importlib.import_module(f"{systems.__name__}.{system}.verification").PROOFS
    assert isinstance(found, Proofs)
    return found
