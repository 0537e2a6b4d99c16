"""A machine made of a distribution's packages works at once. AGGLAB_MACHINE=1 asks for it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("machine.py")
ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("agglab_machine", PROGRAM)
assert SPEC is not None and SPEC.loader is not None
machine = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = machine  # where dataclasses look themselves up
SPEC.loader.exec_module(machine)

ASKED = os.environ.get("AGGLAB_MACHINE") == "1"  # It takes ten minutes or more.
CANNOT_BOOT = not ASKED or machine.missing(boot=True) is not None
CONSOLE = "printf 'Probing\\nLinux version 6\\n[ 1.0] quiet\\n\\033[1mhello\\033[0m\\r\\nlast'; "


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.skipif(CANNOT_BOOT, reason="needs a booted machine: make machine")
def test_quickstart_in_a_machine_that_was_booted(tmp_path: Path) -> None:
    before = leftovers()
    command = [sys.executable, str(PROGRAM), "--results", str(tmp_path / "results")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    (metrics,) = (tmp_path / "results/quickstart").glob("2*/metrics.json")
    found = json.loads(metrics.read_text())
    assert found["ok"] and found["exact"]
    assert leftovers() == before


def leftovers() -> tuple[list[str], list[str]]:
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    folders = Path(tempfile.gettempdir()).glob("agglab-machine-*")
    return mounts, sorted(str(folder) for folder in folders)


def test_what_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    there = ("/usr/sbin/mke2fs", "/usr/sbin/debugfs", "/usr/bin/unshare")
    which = {Path(path).name: path for path in there}
    monkeypatch.setattr(shutil, "which", which.get)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    said = "needs debootstrap, qemu-system-x86_64: apt-get install debootstrap qemu-system-x86"
    assert machine.missing(boot=True) == said
    assert machine.missing(boot=False) == "needs debootstrap: apt-get install debootstrap"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in str(machine.missing(boot=False))


def test_the_console_is_shown_without_the_kernels_lines(capsys: pytest.CaptureFixture[str]) -> None:
    machine._show(["bash", "-c", CONSOLE], timeout_s=60)
    assert capsys.readouterr().out == "| Probing\n| Linux version 6\n| hello\n| last\n"


@pytest.mark.parametrize(
    ("script", "timeout_s", "says"),
    [
        (f"{CONSOLE} sleep 60", 0, "did not end in time"),
        (f"{CONSOLE} exit 9", 60, "bash ended with code 9"),
    ],
)
def test_a_machine_that_fails_is_not_waited_for(script: str, timeout_s: int, says: str) -> None:
    with pytest.raises(machine.Lacking, match=says):
        machine._show(["bash", "-c", script], timeout_s)


@pytest.mark.parametrize(
    ("script", "seconds", "starts"),
    [(f"{CONSOLE} sleep 60", 60, True), ("echo no", 60, False), ("sleep 60", 0, False)],
)
def test_a_kernel_has_started_when_it_says_its_name(
    script: str, seconds: float, starts: bool
) -> None:
    assert machine._starts(["bash", "-c", script], seconds) == starts
