"""Reads and writes the table of mutants (docs/mutants.md). For each fault, the table says which
checks caught it when it was tried last."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agglab.verification.mutants.catalogue import CHECKS, EXPLORE, SCENARIO, UNIT, Mutant
from agglab.verification.mutants.suite import Result

HEAD = (
    "| fault | file | what it breaks | unit test | schedule | scenario |\n|---|---|---|---|---|---|"
)
TESTS, TOOLCHAIN = "tests/", "toolchain/"
NOT_ASKED = "–"
NOT_RUN = "not run"
SURVIVED = "**survived**"
INVALID = "**invalid**"
CODE = re.compile(r"^\| `([^`]+)` \|")

Cells = dict[str, str]
"""The check -> the table's text about it."""


def write(path: Path, mutants: Sequence[Mutant], results: Iterable[Result]) -> None:
    """Writes the table of all mutants, with the new results and, for other mutants, the table's
    earlier contents."""
    known = cells(path.read_text(encoding="utf-8") if path.exists() else "")
    for result in results:
        known[result.mutant.id] = known.get(result.mutant.id, {}) | _cells(result)
    parts = ["# Mutants\n", _totals(mutants, known), *_tables(mutants, known)]
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")  # an interrupt leaves a whole table
    try:
        unfinished.write_text("\n".join(parts), encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _totals(mutants: Sequence[Mutant], known: Mapping[str, Cells]) -> str:
    """Returns a sentence that counts the table's rows by what became of their mutants."""
    counts = Counter(_outcome(mutant, known.get(mutant.id, {})) for mutant in mutants)
    parts = [f"{count} {outcome}" for outcome, count in sorted(counts.items())]
    return f"{len(mutants)} mutants: {', '.join(parts)}.\n"


def _outcome(mutant: Mutant, said: Cells) -> str:
    texts = [said.get(check, NOT_RUN) for check in mutant.checks]
    for outcome in (INVALID, SURVIVED, NOT_RUN):
        if any(text.startswith(outcome) for text in texts):
            return outcome.strip("*")
    return "caught"


def hints(path: Path) -> dict[str, Cells]:
    """Returns by mutant what caught it, according to the table. When a mutant is tried again, this
    is tried first."""
    told = cells(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: {**said, UNIT: _from_root(said[UNIT])} for name, said in told.items()}


def _from_root(test: str) -> str:
    """Returns the path of a test of the table, in which the laboratory's tests are named without
    their folder."""
    return test if test.startswith(TOOLCHAIN) else f"{TESTS}{test}"


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
