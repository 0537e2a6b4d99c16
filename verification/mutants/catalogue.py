"""The faults as passive data, read and checked: catalogue/*.yaml, and mutants/*.yaml in the folder
that a system has for its verification.

A file has a `title`, the `system` whose schedules are searched (by default the default system), and
defaults for its mutants: `file` (the file that is changed), `tests` and `scenarios` (the tests and
shipped scenarios to run, in this order) and `changes`. Each mutant has `id`, `find` (a text that
occurs once in its file), `replace` and `breaks` (what no longer holds). It may also have its own
values of the defaults; its tests and scenarios come before its file's. `changes` names what the
fault breaks. This determines the checks that have to catch it besides the unit tests:

    protocol   what honest workers get, in some order of events: the schedule search
    sums       what a plain run returns: a shipped scenario
    outsiders  what somebody else's packets can do: a shipped scenario
    speed      how long a plain run takes: a shipped scenario
    format, shape, timing, counters, calls, forwarding, plan, judge: the unit tests alone
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from agglab.testbed import systems
from agglab.verification import proofs

FOLDER = Path(__file__).parent / "catalogue"
UNIT, EXPLORE, SCENARIO = "unit", "explore", "scenario"
CHECKS = (UNIT, EXPLORE, SCENARIO)
CAUGHT_BY = {
    "protocol": EXPLORE,
    "sums": SCENARIO,
    "outsiders": SCENARIO,
    "speed": SCENARIO,
    "format": UNIT,
    "shape": UNIT,
    "timing": UNIT,
    "counters": UNIT,
    "calls": UNIT,
    "forwarding": UNIT,
    "plan": UNIT,
    "judge": UNIT,
}
"""Maps what a mutant changes to the check that has to catch it."""
KEYS = {
    "title",
    "system",
    "id",
    "find",
    "replace",
    "breaks",
    "file",
    "tests",
    "scenarios",
    "changes",
}


class CatalogueError(ValueError):
    """Raised for a catalogue that cannot be used. The message names the mutant."""


@dataclass(frozen=True)
class Mutant:
    """One fault: in `file`, the only occurrence of `find` becomes `replace`. group: the name of the
    catalogue's file, without its suffix. system: the system whose schedules are searched."""

    id: str
    group: str
    title: str
    system: str
    file: str
    find: str
    replace: str
    breaks: str
    changes: tuple[str, ...]
    tests: tuple[str, ...]
    scenarios: tuple[str, ...]

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that have to catch the fault."""
        wanted = {UNIT, *(CAUGHT_BY[change] for change in self.changes)}
        return tuple(check for check in CHECKS if check in wanted)

    def apply(self, text: str) -> str:
        """Returns the file's text with the fault. Raises CatalogueError."""
        count = text.count(self.find)
        if count != 1:
            raise CatalogueError(f"{self.id}: {self.file} holds its `find` {count} times, not once")
        return text.replace(self.find, self.replace)


@cache
def read(folder: Path | None = None) -> tuple[Mutant, ...]:
    """Returns all mutants, file by file, in the order of each file. folder: the folder of another
    catalogue. Raises CatalogueError."""
    own = [proofs.folder(name) / "mutants" for name in systems.built_in()]
    found: dict[str, Mutant] = {}
    for path in _files([folder] if folder else [FOLDER, *own]):
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
        defaults = {key: value for key, value in given.items() if key != "mutants"}
        for entry in given["mutants"]:
            mutant = _mutant(path.stem, defaults, entry)
            if mutant.id in found:
                raise CatalogueError(f"{mutant.id}: two mutants have this name")
            found[mutant.id] = mutant
    return tuple(found.values())


def _files(folders: Sequence[Path]) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.glob("*.yaml"))]


def _mutant(group: str, defaults: dict[str, Any], entry: dict[str, Any]) -> Mutant:
    name = entry.get("id", "a mutant without id")
    values = {"scenarios": [], "title": group, "system": systems.default(), **defaults, **entry}
    wrong = KEYS ^ set(values)
    if wrong:
        raise CatalogueError(f"{name}: missing or unknown keys: {', '.join(sorted(wrong))}")
    unknown = set(values["changes"]) - set(CAUGHT_BY)
    if unknown or not values["changes"]:
        raise CatalogueError(f"{name}: changes: {sorted(unknown)}; allowed: {', '.join(CAUGHT_BY)}")
    if values["find"] == values["replace"]:
        raise CatalogueError(f"{name}: it changes nothing")
    tests, scenarios = (
        tuple(dict.fromkeys([*entry.get(key, []), *defaults.get(key, [])]))
        for key in ("tests", "scenarios")
    )
    return Mutant(
        id=name,
        group=group,
        title=values["title"],
        system=values["system"],
        file=values["file"],
        find=values["find"],
        replace=values["replace"],
        breaks=values["breaks"],
        changes=tuple(values["changes"]),
        tests=tests,
        scenarios=scenarios,
    )


def choose(
    mutants: Sequence[Mutant], only: Sequence[str] = (), kinds: Sequence[str] = ()
) -> tuple[Mutant, ...]:
    """Returns the mutants whose names begin with one of `only` and that change one of `kinds`. An
    empty `only` or `kinds` selects all. Raises CatalogueError for a name without a mutant and for
    an unknown kind."""
    for name in only:
        if not any(mutant.id.startswith(name) for mutant in mutants):
            raise CatalogueError(f"no mutant's name begins with {name}")
    for kind in kinds:
        if kind not in CAUGHT_BY:
            raise CatalogueError(f"no kind {kind}; allowed: {', '.join(CAUGHT_BY)}")
    return tuple(
        mutant
        for mutant in mutants
        if (not only or any(mutant.id.startswith(name) for name in only))
        and (not kinds or set(kinds) & set(mutant.changes))
    )
