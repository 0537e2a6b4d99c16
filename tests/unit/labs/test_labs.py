"""The exercises: each skeleton compiles and fails, each solution passes, and each typical wrong
submission fails first at the case that has the message for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from exercises import LABS, WRONG, cases, failed

from agglab.verification.grading.lab import GENERAL, Case, Lab
from agglab.verification.grading.wrong import Wrong

RUNS = [(lab, case) for lab in LABS for case in cases(lab) if case.kind == "scenario"]
# The skeleton of lab 05 is what lab 04 leads to, and no packet is lost in this run.
FAILED_BY_SKELETONS = [
    (lab, case) for lab, case in RUNS if (lab.name, case.id) != ("05-loss", "no-loss")
]


def name(value: Lab | Case) -> str:
    return value.name if isinstance(value, Lab) else value.id


def handed_in(lab: Lab, kind: str) -> Path:
    return lab.folder / f"{kind}{lab.kind}"


def test_there_are_exercises() -> None:
    assert [lab.name[:2] for lab in LABS][:7] == [f"{number:02}" for number in range(1, 8)]


@pytest.mark.parametrize("lab", LABS, ids=name)
def test_an_exercise_is_complete(lab: Lab) -> None:
    hints = [lab.folder / f"hints/{number}.md" for number in (1, 2, 3)]
    assert all(path.is_file() for path in (*hints, lab.folder / "README.md"))
    assert len(lab.wrong()) >= 10
    assert 8 <= lab.points <= 10
    assert "TODO" in handed_in(lab, "skeleton").read_text()
    assert "TODO" not in handed_in(lab, "solution").read_text()


@pytest.mark.parametrize("lab", LABS, ids=name)
def test_every_remark_is_made_on_a_wrong_submission(lab: Lab) -> None:
    remarks = {each.id for case in cases(lab) for each in case.remarks if each not in GENERAL}
    assert remarks - {wrong.meets for wrong in lab.wrong()} == set()


@pytest.mark.parametrize("lab", LABS, ids=name)
def test_every_file_of_a_case_is_used(lab: Lab) -> None:
    kinds = ("packets/*.stf", "runs/*.yaml", "checks/*.py")
    files = [path for kind in kinds for path in lab.folder.glob(kind)]
    there = {path for path in files if path.suffix != ".py" or "def check(" in path.read_text()}
    assert {case.path for case in cases(lab) if case.path != lab.folder} == there


@pytest.mark.long(but=["03-bitmap", "09-worker", "11-figure"])
@pytest.mark.parametrize("lab", LABS, ids=name)
def test_a_skeleton_compiles_and_fails(lab: Lab, tmp_path: Path) -> None:
    assert next(failed(lab, handed_in(lab, "skeleton"), tmp_path), None)


@pytest.mark.long(but=["03-bitmap", "09-worker"])
@pytest.mark.parametrize("lab", LABS, ids=name)
def test_a_solution_passes_all_cases(lab: Lab, tmp_path: Path) -> None:
    assert list(failed(lab, handed_in(lab, "solution"), tmp_path)) == []


@pytest.mark.long(but=["02-sum-four-workers", "05-loss-loss"])
@pytest.mark.parametrize(("lab", "case"), FAILED_BY_SKELETONS, ids=name)
def test_a_skeleton_fails_a_run(lab: Lab, case: Case, tmp_path: Path) -> None:
    """The expectations of every run can fail."""
    assert list(failed(lab, handed_in(lab, "skeleton"), tmp_path, [case])) == [case.id]


@pytest.mark.long(but=["03-bitmap-counts-packets", "04-two-sets-one-set", "09-worker-never-again"])
@pytest.mark.parametrize(
    ("lab", "wrong"), WRONG, ids=[f"{lab.name}-{wrong.name}" for lab, wrong in WRONG]
)
def test_a_wrong_submission_meets_its_message(lab: Lab, wrong: Wrong, tmp_path: Path) -> None:
    path = tmp_path / lab.file
    path.write_text(wrong.text)
    assert next(failed(lab, path, tmp_path), None) == wrong.meets
