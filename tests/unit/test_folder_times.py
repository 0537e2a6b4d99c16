"""What tests/folder_times.py tells of a run, in one process and in several."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import folder_times
import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = {
    "one/test_a.py": "def test_first(): pass\ndef test_second(): assert False\n",
    "two/deep/test_b.py": "import time\ndef test_third(): time.sleep(0.5)\n",
    "two/deep/test_c.py": "import pytest\n@pytest.fixture\ndef broken(): raise OSError\n"
    "def test_fourth(broken): pass\n",
}


BUDGET_CPU_S = 0.25


def told(folder: Path, *options: str) -> list[str]:
    """The lines that pytest prints with the plugin about TESTS."""
    source = (ROOT / "tests/folder_times.py").read_text()
    budget = f"BUDGET_CPU_S = {folder_times.BUDGET_CPU_S}\n"
    assert budget in source
    (folder / "folder_times.py").write_text(
        source.replace(budget, f"BUDGET_CPU_S = {BUDGET_CPU_S}\n")
    )
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    long\n    root\n")
    for name, text in TESTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "folder_times"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two"])
def test_failures_come_at_once_and_folders_at_the_end(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    lines = told(tmp_path, *options)
    end_of_tests = next(
        n for n, line in enumerate(lines) if "= FAILURES =" in line or "= ERRORS =" in line
    )
    said = sorted(line for line in lines[:end_of_tests] if line.startswith("FAILED in"))
    assert said == [
        "FAILED in call: one/test_a.py::test_second",
        "FAILED in setup: two/deep/test_c.py::test_fourth",
    ]
    head = [line.split() for line in lines].index(["folder", "tests", "CPU", "wall"])
    rows = {line.split()[0]: line.split()[1:] for line in lines[head + 1 : head + 4]}
    assert {folder: row[0] for folder, row in rows.items()} == {
        "two/deep": "2",
        "one": "2",
        "all": "4",
    }
    assert list(rows)[-1] == "all"
    for row in (rows["two/deep"], rows["all"]):
        assert 0.5 <= float(row[2]) < 60
        assert 0 <= float(row[1]) < float(row[2])


BUSY = """import os, subprocess, sys, time, pytest
CODE = "import time\\nwhile time.process_time() < 0.3: pass"
def test_in_a_process(): subprocess.run([sys.executable, "-c", CODE], check=True)
def test_that_sleeps(): time.sleep(0.3)
@pytest.mark.long
def test_that_is_long(): exec(CODE)
@pytest.mark.root
def test_with_networks(): exec(CODE)
@pytest.fixture
def costly(): subprocess.run([sys.executable, "-c", CODE], check=True)
def test_set_up(costly): pass
"""


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two"])
def test_what_takes_more_than_its_budget_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """The CPU seconds of its processes and fixtures count. Waiting does not."""
    monkeypatch.setitem(TESTS, "two/deep/test_d.py", BUSY)
    lines = told(tmp_path, *options, "--times-to=times.json")
    head = next(n for n, line in enumerate(lines) if "over the budget of CPU seconds" in line)
    over = dict(reversed(line.split()) for line in lines[head + 1 : head + 3])
    assert {*over} == {
        f"two/deep/test_d.py::{name}" for name in ("test_in_a_process", "test_set_up")
    }
    assert all(0.25 < float(seconds) < 60 for seconds in over.values())
    times = json.loads((tmp_path / "times.json").read_text())
    assert len(times) == 9
    budgets = {spent["budget_cpu_s"]: test.split("::")[1] for test, spent in times.items()}
    assert budgets.keys() == {None, BUDGET_CPU_S, folder_times.ROOT_BUDGET_CPU_S}
    assert (budgets[None], budgets[10]) == ("test_that_is_long", "test_with_networks")
