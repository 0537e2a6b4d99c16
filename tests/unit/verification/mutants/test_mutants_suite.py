"""The runner end to end on a small repository of its own: what is caught, survives, is invalid."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.systems import built_in, in_virtual_time
from agglab.verification.mutants import checks, table
from agglab.verification.mutants.catalogue import Mutant, read
from agglab.verification.mutants.checks import Found, programs_with
from agglab.verification.mutants.suite import ControlFailed, Result, Suite
from agglab.verification.mutants.workspace import NoRepository, Workspace
from p4native.common.c_build import cache_folder

PROGRAM = "def limit(x):\n    return min(x, 5)\n"
OFF = "import os; os.abort(); return"
TESTS = """from program import limit
def test_small():
    assert limit(1) == 1
def test_large():
    assert limit(9) == 5
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository of a program and its tests; an ignored file beside them."""
    folder = tmp_path / "repository"
    (folder / "tests").mkdir(parents=True)
    (folder / "program.py").write_text(PROGRAM)
    (folder / "tests" / "test_program.py").write_text(TESTS)
    (folder / ".gitignore").write_text("secret\n")
    (folder / "secret").write_text("")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def mutant(find: str, new: str, changes: tuple[str, ...] = ("format",)) -> Mutant:
    tests = ("tests/test_program.py",)
    names = ("one", "group", "Title", "switchml")
    return Mutant(*names, "program.py", find, new, "It.", changes, tests, ())


def judged(repository: Path, *mutants: Mutant, out: io.StringIO | None = None) -> list[Result]:
    return Suite(repository, ["unit"], 2, out).run(mutants)


def test_what_is_caught_survives_or_does_not_compile(repository: Path) -> None:
    out = io.StringIO()
    caught, other, survived, invalid = judged(
        repository,
        mutant("min", "max"),
        mutant("5", "6"),
        mutant("5", "2 + 3"),
        mutant("return", "return)"),
        out=out,
    )
    assert caught.found == {"unit": Found("tests/test_program.py::test_small")} and caught.good
    assert other.found == {"unit": Found("tests/test_program.py::test_large")}
    assert survived.survived == ("unit",) and not survived.good
    assert invalid.invalid and "does not compile" in invalid.invalid and not invalid.good
    said = out.getvalue()
    assert "control: unit pass without a fault" in said
    assert "4 of 4, 0 s left" in said and "one: SURVIVED unit" in said
    assert (repository / "program.py").read_text() == PROGRAM


def test_of_a_file_that_programs_include_those_are_compiled(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "one.p4").write_text('#include <core.p4>\n#include "include/shared.p4"\n')
    (tmp_path / "other.p4").write_text("#include <core.p4>\n")
    (tmp_path / "include" / "shared.p4").write_text('#include "inner.p4"\n')
    (tmp_path / "include" / "inner.p4").write_text("")
    for name in ("one.p4", "shared.p4", "inner.p4"):
        assert programs_with(tmp_path, name) == ["one.p4"]
    assert programs_with(tmp_path, "other.p4") == ["other.p4"]


def test_what_caught_it_before_goes_first_if_it_still_does(repository: Path) -> None:
    faulty = mutant("min(x, 5)", "0")  # both tests fail
    for hint, caught in (("test_large", "test_large"), ("test_gone", "test_small")):
        hints = {"one": {"unit": f"tests/test_program.py::{hint}"}}
        (result,) = Suite(repository, ["unit"], 1, None, hints).run([faulty])
        assert result.found["unit"].by == f"tests/test_program.py::{caught}"


def test_a_test_that_fails_without_a_fault_catches_none(repository: Path) -> None:
    (repository / "program.py").write_text(PROGRAM.replace("5", "4"))
    with pytest.raises(ControlFailed, match=r"without any fault, unit: .*test_large"):
        judged(repository, mutant("min", "max"))


def test_tests_of_the_toolchain_are_named_with_its_folder(repository: Path) -> None:
    (repository / "toolchain").mkdir()
    (repository / "tests").rename(repository / "toolchain/tests")
    here = ("toolchain/tests/test_program.py",)
    for faulty, by in (
        (mutant("min", "max"), ""),
        (mutant("return", OFF), " (the interpreter crashed)"),
    ):
        (result,) = judged(repository, replace(faulty, tests=here))
        assert result.found["unit"].by == f"{here[0]}::test_small{by}"
        table.write(repository / "table.md", [faulty], [result])
        hints = table.hints(repository / "table.md")
        assert hints["one"]["unit"].startswith(f"{here[0]}::test_small")
    (result,) = judged(repository, replace(mutant("def limit", "def other"), tests=here))
    assert result.invalid and f"{here[0]} cannot be read" in result.invalid


def test_tests_that_cannot_be_read_catch_none(repository: Path) -> None:
    (result,) = judged(repository, mutant("def limit", "def other"))
    assert result.invalid and "test_program.py cannot be read" in result.invalid


def test_a_text_or_file_that_is_gone_is_invalid_and_the_others_are_judged(
    repository: Path,
) -> None:
    gone, moved, caught = judged(
        repository,
        mutant("maximum", "max"),
        replace(mutant("min", "max"), file="moved.py"),
        mutant("min", "max"),
    )
    assert gone.invalid == "one: program.py holds its `find` 0 times, not once" and not gone.good
    assert moved.invalid == "one: there is no moved.py" and not moved.good
    assert caught.good


CATALOGUE = """
file: program.py
tests: [tests/test_program.py]
changes: [format]
mutants:
- {{id: first, find: min, replace: max, breaks: It.}}
- {{id: endless, find: return, replace: "{endless}", breaks: It.}}
- {{id: later, find: '5', replace: '6', breaks: It.}}
"""
ENDLESS = "import time; told = open('{fifo}', 'w'); time.sleep(1000); return"
"""Tells that it runs, and holds the pipe open for as long as it does."""
RUN = """
import sys
from pathlib import Path
from agglab.verification.mutants import catalogue, command
repository, mutants = (Path(word) for word in sys.argv[1:3])
command.REPOSITORY, command.read = repository, lambda: catalogue.read(mutants)
sys.exit(command.main(["--with", "unit", "--jobs", "1", "--table", sys.argv[3]]))
"""


@pytest.mark.long(but=["2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_what_runs_and_leaves_the_table_of_what_had_ended(
    repository: Path, tmp_path: Path, number: signal.Signals
) -> None:
    fifo, written, temporary = tmp_path / "fifo", tmp_path / "table.md", tmp_path / "temporary"
    temporary.mkdir()
    os.mkfifo(fifo)
    (tmp_path / "a.yaml").write_text(CATALOGUE.format(endless=ENDLESS.format(fifo=fifo)))
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(repository), str(tmp_path), str(written)],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with fifo.open() as mutated:  # waits until the endless mutant runs
        process.send_signal(number)
        _, said = process.communicate()
        assert mutated.read() == ""  # it has ended: nobody writes any more
    assert process.returncode == 128 + number and said == "interrupted\n"
    assert list(temporary.iterdir()) == []
    told = {name: said["unit"] for name, said in table.cells(written.read_text()).items()}
    assert told["first"] == "test_program.py::test_small"
    assert told["endless"] == told["later"] == table.NOT_RUN


def test_a_crash_of_the_interpreter_names_the_test(repository: Path) -> None:
    (result,) = judged(repository, mutant("return", OFF))
    assert result.found["unit"].by == (
        "tests/test_program.py::test_small (the interpreter crashed)"
    )


@pytest.mark.long
def test_a_hang_is_caught_by_the_limit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(checks.LIMITS_S, "unit", 30.0)
    (result,) = judged(repository, mutant("return", "import time; time.sleep(1000); return"))
    assert result.found["unit"].by == "timeout of 30 s"


def test_a_workspace_is_what_git_would_have_and_is_restored(
    repository: Path, tmp_path: Path
) -> None:
    space = Workspace(repository, tmp_path / "copy", tmp_path / "cache")
    names = {str(path.relative_to(space.folder)) for path in space.folder.rglob("*.*")}
    assert names == {"program.py", "tests/test_program.py", ".gitignore"}
    show = ["-c", "import program; print(program.limit(9), program.__file__)"]
    for number in (7, 8):  # the same size, within one second: Python's caches see them all the same
        with space.mutated(mutant("5", str(number))):
            assert space.python(show, 60).output == f"{number} {space.folder}/program.py\n"
    assert space.python(show, 60).output.startswith("5 ")
    with pytest.raises(NoRepository, match="is not a git repository"):
        Workspace(tmp_path, tmp_path / "other", tmp_path / "cache")


@pytest.mark.long
def test_one_mutant_of_the_real_program_end_to_end(tmp_path: Path) -> None:
    """Its own tests, the schedule search and a scenario; the table tells."""
    (real,) = [each for each in read() if each.id == "switch-overwrites"]
    real = replace(real, tests=("tests/unit/p4/test_switchml.py",), scenarios=("int-exact",))
    space = Workspace(REPOSITORY, tmp_path / "copy", tmp_path / "cache")
    with space.mutated(real):
        assert checks.validity(space, real.file) == Found()
        unit = checks.unit(space, real.tests)
        explore = checks.explore(space, real.system, 40)
        scenario = checks.scenario(space, real.scenarios)
    assert unit.by and unit.by.startswith("tests/unit/p4/test_switchml.py::test_")
    assert explore.by and explore.by.startswith("seed 0: switch: s1: ")
    assert scenario.by and scenario.by.startswith(
        "int-exact: h1 (worker 0 of job1), round 0: result["
    )
    result = Result(real, {"unit": unit, "explore": explore, "scenario": scenario})
    table.write(tmp_path / "table.md", [real], [result])
    written = (tmp_path / "table.md").read_text()
    assert table.cells(written)[real.id]["explore"] == explore.by
    table.write(tmp_path / "table.md", [real], [])
    assert (tmp_path / "table.md").read_text() == written


def test_the_table_counts_its_own_rows(tmp_path: Path) -> None:
    """Also those of earlier runs, and those that no run has tried."""
    mutants = [each for each in read() if set(each.checks) == {"unit"}][:5]
    path = tmp_path / "table.md"
    table.write(path, mutants, [Result(mutants[0], {"unit": Found(by="tests/a.py::b")})])
    assert "\n5 mutants: 1 caught, 4 not run.\n" in path.read_text()
    later = [
        Result(mutants[1], {"unit": Found()}),
        Result(mutants[2], {}, invalid="does not compile"),
        Result(mutants[3], {"unit": Found(by="tests/a.py::c")}),
    ]
    table.write(path, mutants, later)
    assert "\n5 mutants: 2 caught, 1 invalid, 1 not run, 1 survived.\n" in path.read_text()


@pytest.mark.long
def test_without_a_fault_schedules_and_scenario_pass(tmp_path: Path) -> None:
    space = Workspace(REPOSITORY, tmp_path / "copy", cache_folder())  # nothing differs in the copy
    for system in in_virtual_time(built_in()):
        assert checks.explore(space, system, 20) == Found()
    assert checks.scenario(space, ["int-exact"]) == Found()
