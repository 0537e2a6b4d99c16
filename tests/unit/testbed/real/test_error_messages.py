"""Errors a user reads, and the small machinery around processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agglab.testbed.base.errors import MachineLacks, NodeFailed
from agglab.testbed.real.machine import _basics
from agglab.testbed.real.process import NodeProcess, stop_all
from p4native.common.processes import exit_in_words


def test_a_lack_names_its_remedy() -> None:
    lack = MachineLacks("the program tc", "apt-get install iproute2")
    assert str(lack) == "this machine lacks the program tc: apt-get install iproute2"


def test_diagnosis_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    what = [what for what, _ in _basics()]
    programs = ("ip", "tc", "mnexec", "ifconfig", "cc")
    assert what == [f"the program {name}" for name in programs]


def test_a_failure_reports_command_log_and_cause(tmp_path: Path) -> None:
    log = tmp_path / "switch-s1.log"
    log.write_text("".join(f"line {n}\n" for n in range(40)))
    failure = NodeFailed("s1", "ended", ["python", "-m", "p4native.switch"], log, "a bad day")
    assert str(failure) == "s1: ended"
    assert failure.report().splitlines() == [
        "s1: ended",
        "  command: python -m p4native.switch",
        f"  log: {log}",
        *(f"    line {n}" for n in range(28, 40)),
        "  likely cause: a bad day",
    ]


def test_a_failure_without_log_still_reports(tmp_path: Path) -> None:
    failure = NodeFailed("s1", "ended", ["x"], tmp_path / "none.log")
    assert failure.report().splitlines()[-1] == f"  log: {tmp_path / 'none.log'}"


@pytest.mark.parametrize(
    ("status", "words"), [(0, "ended with exit code 0"), (-9, "was killed by SIGKILL")]
)
def test_exit_in_words(status: int, words: str) -> None:
    assert exit_in_words(status) == words


def start(tmp_path: Path, code: str) -> NodeProcess:
    command = [sys.executable, "-c", code]
    popen = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    process = NodeProcess("h1", "agent", command, tmp_path / "log", popen)
    if "print" in code:
        assert popen.stdout and popen.stdout.readline()
    return process


def test_processor_time_outlives_the_process(tmp_path: Path) -> None:
    process = start(tmp_path, "sum(range(10_000_000))")
    assert process.wait(60) == 0
    assert process.cpu_s() > 0.02
    assert process.poll() == 0


def test_wait_gives_up(tmp_path: Path) -> None:
    process = start(tmp_path, "import signal; print('up', flush=True); signal.pause()")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert process.poll() is None
    assert process.stop() == -15


def test_stop_all_gives_one_grace_to_all(tmp_path: Path) -> None:
    ignore = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)"
    obey = "import signal; print('up', flush=True); signal.pause()"
    stubborn = [start(tmp_path, f"{ignore}; signal.pause()") for _ in range(3)]
    obedient = start(tmp_path, obey)
    stop_all([*stubborn, obedient], grace_s=0.1)
    assert [process.poll() for process in [*stubborn, obedient]] == [-9, -9, -9, -15]


def test_stop_of_an_ended_process_is_its_status(tmp_path: Path) -> None:
    process = start(tmp_path, "raise SystemExit(4)")
    process.wait(60)
    assert process.stop() == 4
