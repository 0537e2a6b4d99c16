"""tests/run.py: every test is in one part of one tier, a failure of either part fails the whole, no
test at all is no success, and skipped tests are run again."""

from __future__ import annotations

import ast
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


class Mark:
    """A test's marks, as the expressions of run.py see them."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def selected_by(self, expression: str) -> bool:
        known = {name: name in self._names for name in ("root", "long")}
        return bool(eval(expression, {"__builtins__": {}}, known))


@pytest.mark.parametrize("marks", [(), ("root",), ("long",), ("root", "long")])
def test_every_test_is_in_one_part_of_one_tier(marks: tuple[str, ...]) -> None:
    chosen = [
        (part, tier)
        for part, (expression, *_) in run.PARTS.items()
        for tier, added in run.TIERS.items()
        if Mark(*marks).selected_by(expression + added)
    ]
    part = "alone" if "root" in marks else "parallel"
    assert chosen == [(part, "long" if "long" in marks else "short"), (part, "all")]


def test_the_quick_part_names_what_exists_and_needs_no_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(run.subprocess, "call", lambda command, cwd: called.append(command) or 0)
    assert run.main(["--quick", "-x"]) == 0
    (command,) = called
    assert command[-len(run.QUICK) - 1 :] == [*run.QUICK, "-x"]
    assert "not root and not long" in command
    assert set(run.NOT_QUICK) <= set(command)
    left_out = [option.removeprefix("--ignore=") for option in run.NOT_QUICK]
    assert [path for path in (*run.QUICK, *left_out) if not (run.ROOT / path).exists()] == []


class Pytest:
    """Stands in for pytest: records a skip in each part, and keeps what it was called with."""

    def __init__(self) -> None:
        self.options: list[list[str]] = []
        self.chosen: list[list[str]] = []
        """What each part was told to choose from: the contents of its records."""

    def __call__(self, command: list[str], cwd: Path) -> int:
        given = [word.split("=", 1) for word in command if "=/" in word]
        before = [Path(path) for option, path in given if option == "--skipped-from"]
        self.options.append(command)
        self.chosen.append([path.read_text() for path in before])
        record = Path(dict(given)["--skipped-to"])
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(f"run {len(self.options)}")
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
    assert called.chosen == [[], [], *([f"run {number}"] for number in (1, 2, 3, 4))]
    strict = ["--skipped-fail" in command for command in called.options]
    assert strict == [False, False, True, True, True, True]
    assert ["--skipped-table" in command for command in called.options] == [False, True] * 3
    assert all(command[-1] == "tests" for command in called.options)


def test_what_both_tiers_skipped_is_run_again(called: Pytest) -> None:
    for words in (["--short"], ["--long"], ["--long"], ["--skipped"]):
        run.main(words)
    assert called.chosen[:6] == [[]] * 6
    assert called.chosen[6:] == [["run 5", "run 1"], ["run 6", "run 2"]]
    run.main(["--short"])
    assert len(list(run.SKIPPED.iterdir())) == len(run.PARTS)


def test_long_and_skipped_tests_are_run_at_once(called: Pytest) -> None:
    for words in (["--short"], ["--long", "--skipped"], ["--skipped"]):
        run.main(words)
    assert called.chosen == [[], [], ["run 1"], ["run 2"], ["run 3"], ["run 4"]]
    added = ["--skipped-or-long" in command for command in called.options]
    assert added == [False, False, True, True, False, False]


def test_without_a_record_all_tests_are_run(called: Pytest) -> None:
    run.main(["--short"])
    (run.SKIPPED / "short-alone.json").unlink()
    run.main(["--skipped", "tests"])
    assert called.chosen[2:] == [["run 1"], []]


def test_each_part_of_each_tier_has_a_record_of_its_times(called: Pytest) -> None:
    for words in (["--short"], ["--long"], []):
        run.main(words)
    records = [word for command in called.options for word in command if "--times-to" in word]
    assert len({*records}) == len(run.PARTS) * len(run.TIERS)


def test_what_the_second_part_does_not_read_needs_no_root() -> None:
    ignored = [run.ROOT / word.partition("=")[2] for word in run.PARTS["alone"] if "=" in word]
    assert ignored and all(folder.is_dir() for folder in ignored)
    files = [file for folder in ignored for file in folder.rglob("test_*.py")]
    assert [file.name for file in files if marks_root(file.read_text())] == []


def marks_root(source: str) -> bool:
    """Whether `pytest.mark.root` stands in the source, but not in a string."""
    nodes = ast.walk(ast.parse(source)) if "mark.root" in source else ()
    return any(isinstance(node, ast.Attribute) and node.attr == "root" for node in nodes)
