"""Submissions for a tiny exercise, graded from end to end: their points, and the diagnosis."""

from __future__ import annotations

import re
import shlex
import tempfile
from pathlib import Path

import needs
import pytest
from submissions import DOUBLE, ECHO, FIGURE, FORWARD, TESTS, graded, solution, written

from agglab.testbed.cli.main import main
from agglab.verification.grading import lab as labs
from agglab.verification.grading.wrong import Wrong

WRONG = [(folder, each) for folder in (ECHO, FORWARD) for each in labs.read(folder).wrong()]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        (ECHO, "solution.p4"),
        (FORWARD, "solution.p4"),
        pytest.param(DOUBLE, "solution.py", marks=needs.mark("network namespaces")),
        (TESTS, "example.stf"),
        (FIGURE, "solution.yaml"),
    ],
)
def test_what_is_right_has_all_points(folder: Path, name: str) -> None:
    assert main(["grade", str(folder), str(folder / name)]) == 0


@pytest.mark.long(but=["one-port"])
@pytest.mark.parametrize(("folder", "wrong"), WRONG, ids=[each.name for _, each in WRONG])
def test_a_wrong_program_meets_its_case(tmp_path: Path, folder: Path, wrong: Wrong) -> None:
    grade = graded(written(tmp_path, wrong.text), folder)
    assert grade.failed == wrong.meets and not grade.is_full


def wrong_program(tmp_path: Path, folder: Path, name: str) -> str:
    """Writes a wrong program of an exercise and returns its path."""
    (text,) = (each.text for each in labs.read(folder).wrong() if each.name == name)
    return str(written(tmp_path, text))


def test_the_story_names_fields_and_cells(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["grade", str(ECHO), wrong_program(tmp_path, ECHO, "never-writes")]) == 1
    lines = capfd.readouterr().out.splitlines()
    story = [
        "A packet was not counted in its slot.",
        "After 1 packet:",
        "  sent to port 2: question(slot 0, count 0)",
        "  expected from port 2: question(slot 0, count 2)",
        "  came     from port 2: question(slot 0, count 1)",
        "  differs  in question.count: expected 2, came 1",
        "  seen[0] was 0, and is 0",
    ]
    assert lines[lines.index(story[0]) :][: len(story)] == story
    assert lines[-1].startswith("to see it again: ")


def test_the_story_is_about_the_packet_that_shows_it_first(tmp_path: Path) -> None:
    """All three packets are answered wrongly."""
    grade = graded(written(tmp_path, solution(ECHO).replace("count + 1;", "count + 2;")))
    assert [*grade.verdict("counts").story][:3] == [
        "  sent to port 1: question(slot 0, count 0)",
        "  expected from port 1: question(slot 0, count 1)",
        "  came     from port 1: question(slot 0, count 2)",
    ]


def test_what_does_not_compile_has_no_points(tmp_path: Path) -> None:
    grade = graded(written(tmp_path, solution(ECHO).replace("count + 1;", "count + ;")))
    assert grade.points == 0 and grade.failed == "compiles"
    assert grade.verdict("compiles").story[0].startswith("echo.p4:")
    assert str(tmp_path) not in "".join(grade.verdict("compiles").story)


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = written(tmp_path, solution(ECHO))
    assert graded(path).is_full
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_is_told_packet_by_packet(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", str(FORWARD), wrong_program(tmp_path, FORWARD, "one-port")]) == 1
    out = capfd.readouterr().out
    assert "The shortest run that shows it has 2 workers with 4 values each:\n" in out
    assert "h1 -> s1: ethernet(dst 0x020000000002, " in out and "s1 sends it to h1\n" in out
    assert "worker 1 never sent chunks" in out and "\nseed 1\n" in out
    (replay,) = re.findall(r"to see it again: .*agglab (run .*)", out)
    assert main([*shlex.split(replay), "--results", str(tmp_path)]) == 1


def test_tests_that_look_at_nothing_do_not_pass(tmp_path: Path) -> None:
    blind = written(tmp_path, "packet 1 05 00000000\nexpect 1\n", "tests.stf")
    grade = graded(blind, TESTS)
    assert grade.points == 1
    assert grade.verdict("sees-counts").story[0].startswith("The tests pass on 1 of 1 wrong")


def test_tests_that_the_right_program_fails_do_not_pass(tmp_path: Path) -> None:
    wrong = written(tmp_path, "packet 1 05 00000000\nexpect 2\n", "tests.stf")
    grade = graded(wrong, TESTS)
    assert grade.points == 1
    assert grade.verdict("sees-ports").story[0] == "The tests fail on the right program:"


def test_a_scenario_is_judged_by_the_exercises_expectations(tmp_path: Path) -> None:
    text = solution(FIGURE).replace("workers: 2", "workers: 1")
    grade = graded(written(tmp_path, f"{text}expect: {{exact: true}}\n", "figure.yaml"), FIGURE)
    assert grade.failed == "two-workers" and grade.points == 3
