"""The faults still apply, each in exactly one place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.scenario import names
from agglab.verification.mutants import checks
from agglab.verification.mutants.catalogue import CatalogueError, Mutant, choose, read
from agglab.verification.mutants.workspace import Workspace


@pytest.fixture(scope="module")
def mutants() -> Sequence[Mutant]:
    return read()


def test_each_applies_once_and_names_what_exists(mutants: Sequence[Mutant]) -> None:
    scenarios = set(names())
    wrong = {each.id: said for each in mutants if (said := mistake(each, scenarios))}
    assert wrong == {}


def mistake(mutant: Mutant, scenarios: set[str]) -> str:
    """What is wrong with an entry of the catalogue; empty if nothing is."""
    try:
        mutant.apply((REPOSITORY / mutant.file).read_text())
    except (CatalogueError, OSError) as error:
        return str(error)
    gone = [test for test in mutant.tests if not (REPOSITORY / test).exists()]
    unknown = set(mutant.scenarios) - scenarios
    if not mutant.tests or gone or unknown:
        return f"tests: {mutant.tests}, of which missing: {gone}; unknown scenarios: {unknown}"
    return "" if mutant.scenarios or "scenario" not in mutant.checks else "it has no scenario"


def test_there_are_many_and_each_breaks_something_else(mutants: Sequence[Mutant]) -> None:
    assert len(mutants) >= 80
    assert len({(m.file, m.find, m.replace) for m in mutants}) == len(mutants)


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


def test_choosing(mutants: Sequence[Mutant]) -> None:
    assert choose(mutants) == mutants
    assert {m.group for m in choose(mutants, ["verify-"])} == {"judge", "judgement", "pieces"}
    assert {m.system for m in mutants if m.group in ("plan", "judgement")} == {"switchml"}
    protocol = choose(mutants, kinds=["protocol"])
    assert protocol and all("explore" in mutant.checks for mutant in protocol)
    for only, kinds in ((["none-such"], []), ([], ["none-such"])):
        with pytest.raises(CatalogueError, match="none-such"):
            choose(mutants, only, kinds)


@pytest.mark.long(but=["toolchain/p4native/switch/io/buffers.c"])
@pytest.mark.parametrize(
    "file",
    [
        "toolchain/p4native/switch/io/buffers.c",
        "testbed/virtual/native/clock.c",
        "hosts/native/io.c",
    ],
)
def test_a_c_file_is_compiled_with_its_own_library(file: str, tmp_path: Path) -> None:
    """In a copy in which this file alone cannot be compiled."""
    space = Workspace(REPOSITORY, tmp_path / "copy", tmp_path / "cache")
    changed = space.folder / file
    changed.write_text(changed.read_text() + "\nint;;; unfinished(\n")
    found = checks.validity(space, file)
    assert found.invalid and "does not compile" in found.invalid
