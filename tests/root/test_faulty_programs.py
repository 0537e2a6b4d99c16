"""On real links, a program that answers late, only when asked, too often or at a wrong port has
never passed, however busy the machine is. `python -m agglab.verification programs` runs all of
them, as often as one likes."""

from __future__ import annotations

import pytest

from agglab.verification.programs.catalogue import FaultyProgram, read
from agglab.verification.programs.trials import busy, verdicts

pytestmark = pytest.mark.root

PROGRAMS = {program.id: program for program in read()}
SOME = ["switchml-asked", "switchml-late-slot", "switchml-left-out-brief", "omnireduce-late-slot"]


def tried(program: FaultyProgram) -> list[str]:
    return list(verdicts(program, runs=1, jobs=1))


@pytest.mark.parametrize("name", SOME)
def test_a_faulty_program_fails(name: str) -> None:
    assert tried(PROGRAMS[name]) == ["failed"]


def test_a_faulty_program_fails_beside_busy_loops() -> None:
    with busy(8):
        assert tried(PROGRAMS["switchml-asked-brief"]) == ["failed"]


def test_a_right_program_passes_beside_busy_loops() -> None:
    with busy(8):
        assert tried(PROGRAMS["switchml-brief"]) == ["passed"]
