"""Reads and writes the table in docs/mutants.md. For each fault, the table says which checks caught
it in the last run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agglab.verification.mutants.catalogue import CHECKS, EXPLORE, SCENARIO, UNIT, Mutant
from agglab.verification.mutants.suite import Result

HEAD = (
    "| fault | file | what it breaks | unit test | schedule | scenario |\n|---|---|---|---|---|---|"
)
TESTS = "tests/"
NOT_ASKED = "–"
NOT_RUN = "not run"
SURVIVED = "**survived**"
INVALID = "**invalid**"
INTRODUCTION = """# Mutants

`make mutants` writes this page; do not edit it. Each row is a *mutant*: one textual change that
puts a fault into the named file. `make mutants` applies each mutant by itself to a copy of the
repository and runs the checks that have to catch it. The texts are in
`verification/mutants/catalogue/`, and for systems in
`testbed/systems/<name>/verification/mutants/`.

| check | has to catch |
|---|---|
| a unit test | every mutant |
| the schedule search (`verification explore`, within {schedules} schedules) | mutants that, in \
some order of events, change what honest workers receive |
| a shipped scenario in virtual time | mutants that change what a plain run returns, what \
outsiders can do, or how long a plain run takes |

"–" means that the check need not catch the mutant. All checks have to pass without a mutant before
any is tried. A check that runs longer than its limit ({limits}) has
caught the mutant. A mutant that does not compile, or whose place in the file is gone, does not
count. If a run is interrupted, its results so far are kept. When a mutant is tried again, the check
that caught it last time runs first.
"""
CODE = re.compile(r"^\| `([^`]+)` \|")

Cells = dict[str, str]
"""The check -> the table's text about it."""


def write(
    path: Path,
    mutants: Sequence[Mutant],
    results: Iterable[Result],
    introduction: str,
    whole: str | None,
) -> None:
    """Writes the table of all mutants, with the new results and, for other mutants, the table's
    earlier contents.

    whole: a sentence about the run if it included all mutants. None keeps the table's earlier
    sentence.
    """
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    known = cells(old)
    for result in results:
        known[result.mutant.id] = known.get(result.mutant.id, {}) | _cells(result)
    parts = [introduction, whole or sentence(old), *_tables(mutants, known)]
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")  # an interrupt leaves a whole table
    try:
        unfinished.write_text("\n".join(part for part in parts if part), encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def sentence(text: str) -> str:
    """Returns the table's sentence about the last run of all mutants."""
    found = re.search(r"^The last run of all: .*\n", text, re.MULTILINE)
    return found[0] if found else ""


def hints(path: Path) -> dict[str, Cells]:
    """Returns by mutant what caught it, according to the table. When a mutant is tried again, this
    is tried first."""
    told = cells(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: {**said, UNIT: f"{TESTS}{said[UNIT]}"} for name, said in told.items()}


def cells(text: str) -> dict[str, Cells]:
    """Returns the cells of a table, by mutant."""
    found: dict[str, Cells] = {}
    for line in text.splitlines():
        if match := CODE.match(line):
            last = [part.strip() for part in line.strip("| ").split(" | ")][-len(CHECKS) :]
            found[match[1]] = dict(zip(CHECKS, last, strict=True))
    return found


def _cells(result: Result) -> Cells:
    if result.invalid:
        return {check: f"{INVALID}: {_plain(result.invalid)}" for check in result.mutant.checks}
    return {
        check: _plain(found.by) if found.by else SURVIVED for check, found in result.found.items()
    }


def _plain(text: str) -> str:
    return text.replace("|", "/").removeprefix(TESTS)


def _tables(mutants: Sequence[Mutant], known: Mapping[str, Cells]) -> Iterator[str]:
    for group in dict.fromkeys(mutant.group for mutant in mutants):
        own = [mutant for mutant in mutants if mutant.group == group]
        rows = [_row(mutant, known.get(mutant.id, {})) for mutant in own]
        yield f"## {own[0].title}\n\n{HEAD}\n" + "\n".join(rows) + "\n"


def _row(mutant: Mutant, said: Cells) -> str:
    columns = [
        said.get(check, NOT_RUN) if check in mutant.checks else NOT_ASKED
        for check in (UNIT, EXPLORE, SCENARIO)
    ]
    return f"| {' | '.join([f'`{mutant.id}`', mutant.file, _plain(mutant.breaks), *columns])} |"
