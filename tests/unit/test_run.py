"""tests/run.py: a failure of either part fails the whole, no test at all is no success, and skipped
tests are run again."""

from __future__ import annotations

from pathlib import Path

import pytest
import run


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([0, 0], 0),
        ([0, 5], 0),
        ([5, 0], 0),
        ([5, 5], 5),
        ([1, 0], 1),
        ([0, 1], 1),
        ([5, 1], 1),
        ([3, 1], 3),
        ([2], 2),
        ([4], 4),
    ],
)
def test_the_exit_code_of_both_parts(codes: list[int], code: int) -> None:
    assert run.together(codes) == code


def test_every_test_is_in_one_part() -> None:
    (_, together, *_), (_, alone, *_) = run.PARTS.values()
    assert (together, alone) == ("not root", "root")


def test_the_quick_part_names_what_exists_and_needs_no_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(run.subprocess, "call", lambda command, cwd: called.append(command) or 0)
    assert run.main(["--quick", "-x"]) == 0
    (command,) = called
    assert command[-len(run.QUICK) - 1 :] == [*run.QUICK, "-x"]
    assert "not root" in command
    assert set(run.NOT_QUICK) <= set(command)
    left_out = [option.removeprefix("--ignore=") for option in run.NOT_QUICK]
    assert [path for path in (*run.QUICK, *left_out) if not (run.ROOT / path).exists()] == []


class Pytest:
    """Stands in for pytest: records a skip in each part, and keeps what it was called with."""

    def __init__(self) -> None:
        self.options: list[list[str]] = []
        self.chosen: list[str | None] = []
        """What each part was told to choose from: the content of its record."""

    def __call__(self, command: list[str], cwd: Path) -> int:
        given = dict(word.split("=", 1) for word in command if "=/" in word)
        before = Path(given.get("--skipped-from", "/none"))
        self.options.append(command)
        self.chosen.append(before.read_text() if before.is_file() else None)
        record = Path(given["--skipped-to"])
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(f"skips of run {len(self.options)}")
        return 0


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pytest:
    stand_in = Pytest()
    monkeypatch.setattr(run.subprocess, "call", stand_in)
    monkeypatch.setattr(run, "SKIPPED", tmp_path / "skipped")
    monkeypatch.setattr(run, "SKIPPED_BEFORE", tmp_path / "before")
    return stand_in


def test_what_a_run_skipped_is_what_the_next_one_chooses_from(called: Pytest) -> None:
    assert run.main(["tests"]) == 0
    assert run.main(["--skipped", "tests"]) == 0
    assert run.main(["--skipped", "tests"]) == 0
    chosen = [None, None, *(f"skips of run {number}" for number in (1, 2, 3, 4))]
    assert called.chosen == chosen
    strict = ["--skipped-fail" in command for command in called.options]
    assert strict == [False, False, True, True, True, True]
    assert ["--skipped-table" in command for command in called.options] == [False, True] * 3
    assert all(command[-1] == "tests" for command in called.options)


def test_without_a_record_all_tests_are_run(called: Pytest) -> None:
    run.main(["tests"])
    (run.SKIPPED / "alone.json").unlink()
    run.main(["--skipped", "tests"])
    assert called.chosen[2:] == ["skips of run 1", None]
