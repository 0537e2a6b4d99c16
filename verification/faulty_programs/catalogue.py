"""The faulty programs as passive data: faulty_programs.yaml in the folder that a system has for its
verification.

The file has `scenarios`, which are scenarios by name, and `programs`. Each program has `id`,
`kind` (one of KINDS), `scenario` (the name of one of the scenarios), `breaks` (what is wrong with
it), and `changes`: a list of `file` (in p4/), `find` (a text that occurs once there) and `replace`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agglab.testbed import systems
from agglab.verification import proofs

FILE = "faulty_programs.yaml"
KINDS = {
    "asked": "answers only when it is asked again",
    "late": "answers some contributions late",
    "later": "answers rightly at first, and only when it is asked again later on",
    "lies": "answers only when it is asked again, and counts as if it had answered at once",
    "often": "answers too often",
    "port": "answers at a wrong port, or leaves a worker out",
    "": "has no fault",
}
"""What a faulty program does, by kind."""


@dataclass(frozen=True)
class Change:
    """The only occurrence of `find` in a file of p4/ becomes `replace`."""

    file: str
    find: str
    replace: str


@dataclass(frozen=True)
class FaultyProgram:
    """A program of `system` with the fault that `changes` make. scenario: the scenario that runs
    it, as YAML. A program without changes is the system's own."""

    id: str
    system: str
    kind: str
    scenario: Mapping[str, Any]
    breaks: str
    changes: tuple[Change, ...]

    def write(self, folder: Path) -> None:
        """Writes the changed files into `folder`, a copy of p4/. Raises ValueError if a change does
        not fit."""
        for change in self.changes:
            path = folder / change.file
            text = path.read_text(encoding="utf-8")
            if text.count(change.find) != 1:
                raise ValueError(f"{self.id}: {change.file} does not hold {change.find!r} once")
            path.write_text(text.replace(change.find, change.replace), encoding="utf-8")


def read() -> list[FaultyProgram]:
    """Returns all programs, those without a fault first for each scenario of a system."""
    return [program for name in systems.built_in() for program in _of_system(name)]


def _of_system(name: str) -> Iterator[FaultyProgram]:
    path = proofs.folder(name) / FILE
    if not path.is_file():
        return
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    for scenario, text in given["scenarios"].items():
        yield FaultyProgram(f"{name}-{scenario}", name, "", text, "nothing", ())
    for entry in given["programs"]:
        changes = tuple(Change(**change) for change in entry["changes"])
        assert entry["kind"] in KINDS, entry
        scenario = given["scenarios"][entry["scenario"]]
        yield FaultyProgram(
            f"{name}-{entry['id']}", name, entry["kind"], scenario, entry["breaks"], changes
        )
