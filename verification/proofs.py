"""What a system contributes to its own verification, in addition to the methods that the testbed
calls.

It is in `systems/<name>/verification/`. If that folder is a package, the package has an object
`PROOFS` of class Proofs, and nothing else of the system imports it. A system without such
a package is only tested with scenarios. The files `mutants/*.yaml` in the folder are faults of that
system (see mutants/catalogue.py).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TextIO

from agglab.testbed.scenario import ResolvedScenario
from agglab.testbed.schema.system_names import PACKAGE
from agglab.testbed.systems.base import Cells
from agglab.testbed.virtual import CompiledProgram
from agglab.verification.explore import walk


@dataclass(frozen=True)
class Proofs:
    """What one system contributes.

    walks: makes worlds from the compiled program and from models of the protocol; `explore` moves
    these worlds. exhaust: tries every order of events of small cases and raises walk.FaultFound; it
    takes (P4 program, steps, where to print). script: makes a packet test for a number of lanes,
    whose entries and frames `fuzz` uses to start from. options: draws the system's own keys for
    `explore`, as an object of the system's class `options`, for a number of jobs. Without it,
    schedules use the default values. repeats: returns the most packets that agents may have sent
    again although nothing was lost or late, because of how the system works; it takes the scenario
    and the counters of each switch.
    """

    walks: Callable[[CompiledProgram], walk.System[Any]] | None = None
    exhaust: Callable[[Path, int, TextIO], None] | None = None
    script: Callable[[int], str] | None = None
    options: Callable[[Random, int], object] | None = None
    repeats: Callable[[ResolvedScenario, Mapping[str, Mapping[str, Cells]]], int] | None = None


def folder(system: str) -> Path:
    """Returns the folder of a system's contribution. The folder need not exist."""
    (home,) = importlib.import_module(PACKAGE).__path__
    return Path(home) / system / "verification"


def of(system: str) -> Proofs:
    """Returns the Proofs of a system that comes with Agglab, by the system's name."""
    if not (folder(system) / "__init__.py").is_file():
        return Proofs()
    found = importlib.import_module(f"{PACKAGE}.{system}.verification").PROOFS
    assert isinstance(found, Proofs)
    return found
