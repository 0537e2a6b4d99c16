"""Runs the command lines of README.md, CONTRIBUTING.md and docs/ in a fresh clone, as root and as
an ordinary user with Debian's PATH. AGGLAB_DOCUMENTS=long also runs those that take minutes."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import needs
import pytest
from newcomer import Newcomer, clone, give_to
from reviewed import REVIEWED, USERS, Review

pytestmark = pytest.mark.root
IS_LONG = os.environ.get("AGGLAB_DOCUMENTS") == "long"
OF_TIME = re.compile(r"expected (\w*link_bound_ratio|ratio\.\S+|\S*time_s\S*) ")
"""An expectation about time, which a busy machine may miss."""


@pytest.fixture(scope="module")
def newcomer(request: pytest.FixtureRequest) -> Iterator[Newcomer]:
    needs.require("make", "mn", "openssl", "setpriv")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        place, home = Path(folder) / "agglab", Path(folder) / "home"
        place.mkdir()
        home.mkdir()
        clone(place, IS_LONG)
        give_to(Path(folder), request.param)
        reader = Newcomer(request.param, place, home)
        if reader.run(".venv/bin/python -c 'import numpy'").returncode != 0:
            reader_may = f"a checkout that the user {request.param} may read"
            needs.skip_lacking(reader_may, "move it out of private folders")
        reader.prepare()
        give_to(place, request.param)
        yield reader


def cases() -> Iterator[object]:
    """Each user with the lines to run; a line that several commands share is run once."""
    chosen = {how.line(IS_LONG): how for how in REVIEWED.values() if how.line(IS_LONG)}
    for user in USERS:
        for line, how in chosen.items():
            if user in how.users:
                yield pytest.param(user, line, how, id=f"{user}-{line[:80]}")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("newcomer", "line", "how"), cases(), indirect=["newcomer"])
def test_the_command_works(newcomer: Newcomer, line: str, how: Review) -> None:
    done = newcomer.run(line)
    said = done.stdout + done.stderr
    if done.returncode != how.code(newcomer.user):
        assert how.is_timed and is_only_late(done), f"exit code {done.returncode}\n{said}"
    assert "not found" not in said and "Traceback" not in said, said


def is_only_late(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a run failed, and only because times were not as expected."""
    reasons = re.findall(r"^ +reason +(.*)$", done.stdout, re.MULTILINE)
    return bool(reasons) and all(OF_TIME.match(reason) for reason in reasons)
