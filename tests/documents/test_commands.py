"""Runs the command lines of README.md, CONTRIBUTING.md and docs/ in a fresh clone, as root and as
an ordinary user with Debian's PATH. `make test` runs those that the README shows, as root.
AGGLAB_DOCUMENTS=long also runs those that take minutes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import needs
import pytest
from newcomer import IS_LONG, LIMIT_S, Newcomer, arrived
from trials import ORDINARY_USER, ROOT_USER, Trial, is_on_real_links, trials

pytestmark = pytest.mark.root
OF_TIME = re.compile(r"expected (\w*link_bound_ratio|ratio\.\S+|\S*time_s\S*) ")
"""An expectation about time, which a busy machine may miss."""
FAULT = re.compile(r": (command )?not found$|^Traceback \(most recent", re.MULTILINE)
"""What no exit code tells: the shell's message about a program, and a Python error."""


@pytest.fixture(scope="module")
def root() -> Iterator[Newcomer]:
    with arrived(ROOT_USER) as reader:
        reader.prepare()
        yield reader


@pytest.fixture(scope="module")
def nobody() -> Iterator[Newcomer]:
    with arrived(ORDINARY_USER) as reader:
        reader.prepare()
        yield reader


def case(trial: Trial) -> Any:
    """A case of the test below."""
    marks = [pytest.mark.long] if trial.is_long else []
    return pytest.param(trial, id=f"{trial.user}-{trial.line[:80]}", marks=marks)


@pytest.mark.every
@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize("trial", [case(each) for each in trials(IS_LONG)])
def test_the_command_works(trial: Trial, request: pytest.FixtureRequest) -> None:
    newcomer: Newcomer = request.getfixturevalue(trial.user)
    done = newcomer.run(trial.line)
    said = done.stdout + done.stderr
    if done.returncode != 0:
        needs.skip_if_said_lacking(said)
        is_excused = is_on_real_links(trial.line) and is_only_late(done)
        assert is_excused, f"exit code {done.returncode}\n{said}"
    assert not FAULT.search(said), said
    assert [word for word in trial.mentioned if word not in said] == []


def is_only_late(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a run failed, and only because times were not as expected."""
    reasons = re.findall(r"^ +reason +(.*)$", done.stdout, re.MULTILINE)
    return bool(reasons) and all(OF_TIME.match(reason) for reason in reasons)
