"""What tests/folder_times.py tells of a run, in one process and in several."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = {
    "one/test_a.py": "def test_first(): pass\ndef test_second(): assert False\n",
    "two/deep/test_b.py": "import time\ndef test_third(): time.sleep(0.5)\n",
    "two/deep/test_c.py": "import pytest\n@pytest.fixture\ndef broken(): raise OSError\n"
    "def test_fourth(broken): pass\n",
}


def told(folder: Path, *options: str) -> list[str]:
    """The lines that pytest prints with the plugin about TESTS."""
    (folder / "folder_times.py").write_text((ROOT / "tests/folder_times.py").read_text())
    (folder / "pytest.ini").write_text("[pytest]\n")
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
    (head,) = (n for n, line in enumerate(lines) if line.split() == ["folder", "tests", "seconds"])
    (deep, deep_tests, deep_s), (one, one_tests, _) = (
        line.split() for line in lines[head + 1 : head + 3]
    )
    assert (deep, deep_tests, one, one_tests) == ("two/deep", "2", "one", "2")
    assert 0.5 <= float(deep_s) < 60
