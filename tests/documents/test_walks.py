"""Takes the walks of labs/ word for word in a fresh clone, as root and as an ordinary user: types
each command, makes each change of the program, and compares what is shown with what comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from newcomer import LIMIT_S, Newcomer, arrived
from trials import ORDINARY_USER, ROOT_USER
from walks import WALKS, Step, missing, steps

pytestmark = pytest.mark.root
JUDGING = ("./agglab grade", "./p4native-stf")
"""The commands that end with exit code 1 as long as a program is not right."""


def change(clone: Path, step: Step) -> None:
    """Replaces a text in the one program of the clone that has it and that a student edits."""
    programs = [*clone.glob("labs/*/*.p4")]
    edited = [path for path in programs if path.stem not in ("skeleton", "solution")]
    (program,) = [path for path in edited if path.read_text().count(step.before) == 1]
    program.write_text(program.read_text().replace(step.before, step.after))


@pytest.mark.long
@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize("user", [ROOT_USER, ORDINARY_USER])
@pytest.mark.parametrize("page", WALKS, ids=lambda page: page.stem)
def test_a_walk_leads_where_it_says(page: Path, user: str) -> None:
    with arrived(user) as newcomer:
        for step in steps(page):
            if step.before:
                change(newcomer.clone, step)
            said = "".join(typed(newcomer, line) for line in step.lines)
            assert list(missing(step.shown, said)) == [], said


def typed(newcomer: Newcomer, line: str) -> str:
    """Returns what a command line prints."""
    done = newcomer.run(line)
    allowed = (0, 1) if line.startswith(JUDGING) else (0,)
    assert done.returncode in allowed, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_there_is_a_walk_for_each_reader() -> None:
    assert [page.stem for page in WALKS] == ["student-walk", "teacher-walk"]
    assert all(step.shown or "mkdir" in step.lines[0] for page in WALKS for step in steps(page))


def test_a_line_that_does_not_come_is_noticed() -> None:
    output = "one 1\ntwo two\nthree"
    assert list(missing(["one", "two [...]wo", "three"], output)) == []
    assert list(missing(["one", "four"], output)) == ["four"]
    assert list(missing(["two", "one"], output)) == ["one"], "the order counts"
