"""A test that hangs ends, and is named: in Python it fails, in C it ends the run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def hangs(folder: Path, statement: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What pytest prints of a test that hangs and one that follows, under our conftest."""
    source = (HERE / "hooks.py").read_text().replace("GRACE_S = 30", "GRACE_S = 1")
    (folder / "hooks.py").write_text(source)
    for name in ("conftest.py", "need.py"):
        shutil.copy(HERE / name, folder)
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 1\n")
    (folder / "test_it.py").write_text(
        f"import itertools\ndef test_that_hangs():\n    {statement}\ndef test_after():\n    pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120)


def test_every_test_has_a_limit(request: pytest.FixtureRequest) -> None:
    assert 0 < float(request.config.getini("timeout")) <= 600


def test_a_hang_in_python_fails_the_test_alone(tmp_path: Path) -> None:
    done = hangs(tmp_path, "while True: pass", "-rf")
    assert "FAILED test_it.py::test_that_hangs - Failed: Timeout" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


def test_a_hang_in_c_names_the_test_and_ends(tmp_path: Path) -> None:
    done = hangs(tmp_path, "sum(itertools.repeat(0))")
    assert done.returncode == 1
    assert "in test_that_hangs" in done.stderr
    assert "passed" not in done.stdout
