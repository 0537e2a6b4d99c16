"""The exercises: each skeleton compiles and fails, each solution passes, and each typical wrong
program fails first at the case that has the message for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from exercises import (
    LABS,
    Wrong,
    cases,
    failed_packets,
    lab_of,
    run_case,
    suffix,
    wrong_submissions,
)

P4_LABS = [folder for folder in LABS if suffix(folder) == ".p4"]
RUNS = [(folder, case) for folder in P4_LABS for case in cases(folder) if "scenario" in case]
# The skeleton of lab 05 is what lab 04 leads to, and no packet is lost in this run.
FAILED_BY_SKELETONS = [
    (folder, case) for folder, case in RUNS if (folder.name, case["id"]) != ("05-loss", "no-loss")
]


def name(value: Any) -> str:
    return value["id"] if isinstance(value, dict) else getattr(value, "name", str(value))


def test_there_are_exercises() -> None:
    assert len(P4_LABS) >= 7


@pytest.mark.parametrize("folder", LABS, ids=name)
def test_an_exercise_is_complete(folder: Path) -> None:
    names = [folder / f"{kind}{suffix(folder)}" for kind in ("skeleton", "solution")]
    hints = [folder / f"hints/{number}.md" for number in (1, 2, 3)]
    assert all(path.is_file() for path in (*names, *hints, folder / "README.md"))
    assert len(list((folder / "wrong").iterdir())) >= 5
    identifiers = [case["id"] for case in cases(folder)]
    assert len(identifiers) == len(set(identifiers))
    assert 8 <= 1 + sum(part["points"] for part in lab_of(folder)["parts"]) <= 10
    assert "TODO" in names[0].read_text() and "TODO" not in names[1].read_text()


@pytest.mark.parametrize("folder", LABS, ids=name)
def test_every_file_of_a_case_is_used_and_there(folder: Path) -> None:
    keys = ("stf", "scenario", "python")
    used = {folder / case[key] for case in cases(folder) for key in keys if key in case}
    there = {path for kind in ("packets", "runs", "checks") for path in folder.glob(f"{kind}/*.*")}
    assert used == there


@pytest.mark.parametrize("folder", P4_LABS, ids=name)
def test_a_skeleton_compiles_and_fails(folder: Path) -> None:
    assert list(failed_packets(folder, folder / "skeleton.p4"))


@pytest.mark.parametrize("folder", P4_LABS, ids=name)
def test_a_solution_passes_all_packet_cases(folder: Path) -> None:
    assert list(failed_packets(folder, folder / "solution.p4")) == []


@pytest.mark.parametrize(("folder", "case"), RUNS, ids=name)
def test_a_solution_passes_a_run(folder: Path, case: dict[str, Any], tmp_path: Path) -> None:
    assert run_case(folder, case, folder / "solution.p4", tmp_path) == []


@pytest.mark.parametrize(("folder", "case"), FAILED_BY_SKELETONS, ids=name)
def test_a_skeleton_fails_a_run(folder: Path, case: dict[str, Any], tmp_path: Path) -> None:
    """The expectations of every run can fail."""
    assert run_case(folder, case, folder / "skeleton.p4", tmp_path)


@pytest.mark.parametrize("wrong", wrong_submissions(".p4"), ids=str)
def test_a_wrong_program_meets_its_message(wrong: Wrong) -> None:
    failed = list(failed_packets(wrong.folder, wrong.path))
    assert failed[0] == wrong.meets
