"""tests/run.py: every test is in one part of one tier, a failure of any part fails the whole, no
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
        ([5, 0, 1], 1),
        ([2], 2),
        ([4], 4),
    ],
)
def test_the_exit_code_of_all_parts(codes: list[int], code: int) -> None:
    assert run.together(codes) == code


class Mark:
    """A test's marks, as the expressions of run.py see them."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def selected_by(self, expression: str) -> bool:
        known = {name: name in self._names for name in ("root", "long", "alone", "undrawn")}
        return bool(eval(expression, {"__builtins__": {}}, known))


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize(
    ("part", "marks"),
    [("parallel", ()), ("networks", ("root",)), ("alone", ("root", "alone"))],
)
def test_every_test_is_in_one_part_of_one_tier(
    part: str, marks: tuple[str, ...], is_long: bool
) -> None:
    test = Mark(*marks, *(["long"] if is_long else []))
    chosen = [
        (name, tier)
        for name, (expression, *_) in run.PARTS.items()
        for tier, added in run.TIERS.items()
        if test.selected_by(expression + added)
    ]
    assert chosen == [(part, "long" if is_long else "short"), (part, "all")]


def test_a_case_that_is_not_drawn_is_in_neither_tier() -> None:
    test = Mark("long", "undrawn")
    expressions = {tier: f"not root{added}" for tier, added in run.TIERS.items()}
    chosen = [tier for tier, expression in expressions.items() if test.selected_by(expression)]
    assert chosen == ["all"]


def test_the_quick_part_names_what_exists_and_needs_no_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(run.subprocess, "call", lambda command, **_: called.append(command) or 0)
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
        self.environments: list[dict[str, str]] = []
        self.options: list[list[str]] = []
        self.chosen: list[list[str]] = []
        """What each part was told to choose from: the contents of its records."""

    def __call__(self, command: list[str], cwd: Path, env: dict[str, str]) -> int:
        self.environments.append(env)
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


def numbered(first: int) -> list[list[str]]:
    """What the parts of a run choose from: the records of `first` and of the calls that follow."""
    return [[f"run {first + part}"] for part in range(len(run.PARTS))]


NOTHING = [[]] * len(run.PARTS)


def test_what_a_run_skipped_is_what_the_next_one_chooses_from(called: Pytest) -> None:
    parts = len(run.PARTS)
    assert run.main(["tests"]) == 0
    assert run.main(["--skipped", "tests"]) == 0
    assert run.main(["--skipped", "tests"]) == 0
    assert called.chosen == [*NOTHING, *numbered(1), *numbered(1 + parts)]
    strict = ["--skipped-fail" in command for command in called.options]
    assert strict == [False] * parts + [True] * 2 * parts
    table = ["--skipped-table" in command for command in called.options]
    assert table == ([False] * (parts - 1) + [True]) * 3
    assert all(command[-1] == "tests" for command in called.options)


def test_what_both_tiers_skipped_is_run_again(called: Pytest) -> None:
    parts = len(run.PARTS)
    for words in (["--short"], ["--long"], ["--long"], ["--skipped"]):
        run.main(words)
    assert called.chosen[: 3 * parts] == NOTHING * 3
    both = zip(numbered(1 + 2 * parts), numbered(1), strict=True)
    assert called.chosen[3 * parts :] == [long + short for long, short in both]
    run.main(["--short"])
    assert len(list(run.SKIPPED.iterdir())) == parts


def test_long_and_skipped_tests_are_run_at_once(called: Pytest) -> None:
    parts = len(run.PARTS)
    for words in (["--short"], ["--long", "--skipped"], ["--skipped"]):
        run.main(words)
    assert called.chosen == [*NOTHING, *numbered(1), *numbered(1 + parts)]
    added = ["--skipped-or-long" in command for command in called.options]
    assert added == [False] * parts + [True] * parts + [False] * parts


def test_without_a_record_all_tests_are_run(called: Pytest) -> None:
    run.main(["--short"])
    (run.SKIPPED / "short-alone.json").unlink()
    run.main(["--skipped", "tests"])
    assert called.chosen[len(run.PARTS) :] == [*numbered(1)[:-1], []]


def test_each_part_of_each_tier_has_a_record_of_its_times(called: Pytest) -> None:
    for words in (["--short"], ["--long"], []):
        run.main(words)
    records = [word for command in called.options for word in command if "--times-to" in word]
    assert len({*records}) == len(run.PARTS) * len(run.TIERS)


def test_python_keeps_what_it_compiles_and_not_beside_the_sources(
    called: Pytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    run.main(["--short"])
    for environment in called.environments:
        assert environment["PYTHONPYCACHEPREFIX"] == str(run.ROOT / "build/pycache")
        assert "PYTHONDONTWRITEBYTECODE" not in environment


def test_what_the_parts_for_root_do_not_read_needs_no_root() -> None:
    ignored = [run.ROOT / word.removeprefix("--ignore=") for word in run.NO_ROOT_NEEDED]
    assert all({*run.NO_ROOT_NEEDED} <= {*run.PARTS[part]} for part in ("networks", "alone"))
    assert ignored and all(folder.is_dir() for folder in ignored)
    files = [file for folder in ignored for file in folder.rglob("test_*.py")]
    assert [file.name for file in files if marks_root(file.read_text())] == []


def marks_root(source: str) -> bool:
    """Whether `pytest.mark.root` stands in the source, but not in a string."""
    nodes = ast.walk(ast.parse(source)) if "mark.root" in source else ()
    return any(isinstance(node, ast.Attribute) and node.attr == "root" for node in nodes)
