"""The faults still apply, each in exactly one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed.paths import REPOSITORY
from agglab.testbed.scenario import names
from agglab.verification.mutants import checks
from agglab.verification.mutants.catalogue import CatalogueError, Mutant, choose, read
from agglab.verification.mutants.workspace import Workspace

MUTANTS = read()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_each_applies_once_and_names_what_exists(mutant: Mutant) -> None:
    original = (REPOSITORY / mutant.file).read_text()
    assert mutant.apply(original) != original
    assert mutant.tests and all((REPOSITORY / test).exists() for test in mutant.tests)
    assert set(mutant.scenarios) <= set(names())
    assert mutant.scenarios or "scenario" not in mutant.checks


def test_there_are_many_and_each_breaks_something_else() -> None:
    assert len(MUTANTS) >= 80
    assert len({(m.file, m.find, m.replace) for m in MUTANTS}) == len(MUTANTS)


CATALOGUE = """
file: a.c
tests: [tests]
changes: [format]
mutants:
- {id: one, find: x, replace: y, breaks: It.}
"""


def test_a_text_that_is_there_twice_or_not_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CATALOGUE)
    (mutant,) = read(tmp_path)
    assert mutant.apply("axb") == "ayb"
    for text, count in (("xx", 2), ("", 0)):
        with pytest.raises(CatalogueError, match=f"one: a.c holds its `find` {count} times"):
            mutant.apply(text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[format]", "[colour]", "one: changes: .'colour'.; allowed: protocol"),
        ("[format]", "[]", "one: changes"),
        ("find: x", "fnd: x", "one: missing or unknown keys: find, fnd"),
        ("replace: y", "replace: x", "one: it changes nothing"),
        ("- {id", "- {id: one, find: x, replace: z, breaks: It.}\n- {id", "two mutants have"),
    ],
)
def test_a_catalogue_that_cannot_be_used(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "a.yaml").write_text(CATALOGUE.replace(old, new))
    with pytest.raises(CatalogueError, match=said):
        read(tmp_path)


def test_choosing() -> None:
    assert choose(MUTANTS) == MUTANTS
    assert {m.group for m in choose(MUTANTS, ["verify-"])} == {"judge", "judgement", "pieces"}
    assert {m.system for m in MUTANTS if m.group in ("plan", "judgement")} == {"switchml"}
    protocol = choose(MUTANTS, kinds=["protocol"])
    assert protocol and all("explore" in mutant.checks for mutant in protocol)
    for only, kinds in ((["none-such"], []), ([], ["none-such"])):
        with pytest.raises(CatalogueError, match="none-such"):
            choose(MUTANTS, only, kinds)


@pytest.mark.parametrize(
    "file", ["switch/io/buffers.c", "testbed/virtual/native/clock.c", "hosts/native/io.c"]
)
def test_a_c_file_is_compiled_with_its_own_library(file: str, tmp_path: Path) -> None:
    """In a copy in which this file alone cannot be compiled."""
    space = Workspace(REPOSITORY, tmp_path / "copy", tmp_path / "cache")
    changed = space.folder / file
    changed.write_text(changed.read_text() + "\nint;;; unfinished(\n")
    found = checks.validity(space, file)
    assert found.invalid and "does not compile" in found.invalid
