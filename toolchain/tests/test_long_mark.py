"""The mark `long`: which cases of a test it leaves out; it names no case that is not there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hooks import CASES

HERE = Path(__file__).resolve().parent
TESTS = """import pytest
@pytest.mark.long
def test_whole(): pass
@pytest.mark.long(but=["a-1"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("letter", ["a", "b"])
def test_pairs(letter, number): pass
@pytest.mark.long(only=["7 of [x]"])
@pytest.mark.parametrize("number", [7, 8], ids="{} of [x]".format)
def test_one(number): pass
def test_short(): pass
"""


def collected(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What pytest collects of a file, under our conftest."""
    for name in ("conftest.py", "hooks.py", "need.py"):
        shutil.copy(HERE / name, folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = long\n")
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q"]
    return subprocess.run([*command, *options], capture_output=True, text=True, cwd=folder)


def names(done: subprocess.CompletedProcess[str]) -> set[str]:
    return {line.split("::")[1] for line in done.stdout.splitlines() if "::" in line}


def test_the_cases_of_the_two_tiers_are_all_cases(tmp_path: Path) -> None:
    short = names(collected(tmp_path, TESTS, "-m", "not long"))
    long = names(collected(tmp_path, TESTS, "-m", "long"))
    assert short == {"test_short", "test_pairs[a-1]", "test_one[8 of [x]]"}
    assert long == {"test_whole", "test_one[7 of [x]]"} | {
        f"test_pairs[{pair}]" for pair in ("a-2", "b-1", "b-2")
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"a-1"', '"a-3"', "test_pairs[a-1]: long(but=...) names no case of this test: ['a-3']"),
        ("long(but", "long(of", "long(of=...) names no case"),
        ("mark.long\n", 'mark.long(only=["x"])\n', "test_whole: long(only=...) names no case"),
    ],
)
def test_a_case_that_is_not_there_is_an_error(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in TESTS
    done = collected(tmp_path, TESTS.replace(old, new))
    assert done.returncode == 2
    assert said in done.stdout


def test_one_case_can_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").touch()
    assert names(collected(tmp_path, TESTS, "test_it.py::test_pairs[b-2]")) == {"test_pairs[b-2]"}


MANY = """import pytest
@pytest.mark.long(but=["3"])
@pytest.mark.parametrize("number", range(40))
def test_many(number): pass
@pytest.mark.every
@pytest.mark.long
@pytest.mark.parametrize("number", range(40))
def test_every(number): pass
@pytest.mark.at_most(2)
@pytest.mark.long
@pytest.mark.parametrize("number", range(CASES))
def test_few(number): pass
""".replace("CASES", str(CASES))


def test_of_many_long_cases_the_seed_draws_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another seed draws others, and one seed always the same; without the mark, all are run."""
    drawn: dict[str, set[str]] = {}
    for seed in ("1", "2"):
        monkeypatch.setenv("TEST_SEED", seed)
        said = names(collected(tmp_path, MANY, "-m", "long and not undrawn"))
        assert said == names(collected(tmp_path, MANY, "-m", "long and not undrawn"))
        drawn[seed] = {name for name in said if name.startswith("test_many")}
        assert len({name for name in said if name.startswith("test_few")}) == 2
        assert len({name for name in said if name.startswith("test_every")}) == 40
    assert [len(each) for each in drawn.values()] == [CASES, CASES]
    assert drawn["1"] != drawn["2"] and "test_many[3]" not in drawn["1"] | drawn["2"]
    assert names(collected(tmp_path, MANY, "-m", "not long")) == {"test_many[3]"}
    assert len(names(collected(tmp_path, MANY))) == 80 + CASES
