"""Processes in which submissions are judged: each limit, and that nothing is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import needs
import pytest
from waiting import until

from agglab.verification.grading import sandbox
from agglab.verification.grading.result import Judged
from agglab.verification.grading.sandbox import Limits, Report, Task

PASSED = Judged("one", True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def ended(work: sandbox.Work, limits: Limits) -> sandbox.Ended:
    ((_, came),) = sandbox.run([Task("x", work)], limits, 1)
    return came


def spin() -> None:
    while True:
        pass


def eat() -> None:
    bytearray(1 << 40)


def sleep() -> None:
    time.sleep(10_000)


@pytest.mark.parametrize(
    ("act", "wall_s", "why"),
    [
        (spin, 300, "It used more than 1 s of processor time."),
        (eat, 300, "It needed more than 2048 MiB of memory."),
        (sleep, 3, "It had not ended after 3 s."),
    ],
)
def test_a_limit_ends_it_and_keeps_what_was_judged(
    act: Callable[[], None], wall_s: float, why: str
) -> None:
    """On a busy machine a second of processor time can take many seconds."""

    def work(folder: Path, report: Report) -> None:
        report(PASSED)
        act()
        report(Judged("two", True))

    came = ended(work, Limits(cpu_s=1, wall_s=wall_s, memory_bytes=2 << 30))
    assert came == sandbox.Ended((PASSED,), why)


def test_endless_reports_end() -> None:
    def work(folder: Path, report: Report) -> None:
        while True:
            report(Judged("one", False, ("x" * 10_000,)))

    assert ended(work, Limits()).why


def test_no_file_is_larger_than_allowed(folder: Path) -> None:
    def work(folder: Path, report: Report) -> None:
        (folder / "big").write_bytes(bytes(2 << 20))

    assert ended(work, Limits(file_bytes=1 << 20)).why == "Judging it ended with exit code 1."
    assert not list(folder.iterdir())


def test_its_processes_end_with_it(folder: Path) -> None:
    marker = f"{folder.name}-sleeper"

    def work(folder: Path, report: Report) -> None:
        command = [sys.executable, "-c", "import time; time.sleep(10_000)", marker]
        subprocess.Popen(command, start_new_session=True)
        report(PASSED)

    assert ended(work, Limits()).judged == (PASSED,)
    until(lambda: marker not in commands(), "its process has ended")
    assert not list(folder.iterdir())


def commands() -> str:
    """The command lines of all processes."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_text())
        except OSError:
            continue
    return "\n".join(lines)


def test_whoever_stops_asking_ends_them(folder: Path) -> None:
    pids = folder / "pids"

    def work(folder: Path, report: Report) -> None:
        with pids.open("a") as file:
            file.write("started\n")
        sleep()

    def quick(folder: Path, report: Report) -> None:
        report(PASSED)

    asked = sandbox.run([Task("x", work), Task("y", quick)], Limits(), 2)
    assert next(asked)[1].judged == (PASSED,)
    asked.close()
    assert not list(folder.glob(f"{sandbox.PREFIX}*"))


PROGRAM = """
import sys, time
from pathlib import Path
from agglab.verification.grading import sandbox

def work(folder, report):
    Path(sys.argv[1]).write_text(str(folder))
    time.sleep(10_000)

list(sandbox.run([sandbox.Task("x", work)], sandbox.Limits(), 1))
"""


def test_what_a_killed_grader_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    note = tmp_path / "note"
    command = [sys.executable, "-c", PROGRAM, str(note)]
    grader = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)})
    until(lambda: note.exists() and note.read_text() != "", "it judges")
    left = Path(note.read_text())
    grader.send_signal(signal.SIGKILL)
    grader.wait()
    assert left.is_dir()

    def removed() -> bool:
        ended(lambda folder, report: None, Limits())
        return not left.exists()

    until(removed, "the folder is removed")


@needs.mark("network namespaces")
def test_many_files_do_not_fill_the_disk(folder: Path) -> None:
    def fill(own: Path, report: Report) -> None:
        try:
            for number in range(8):
                (own / str(number)).write_bytes(bytes(1 << 20))
        except OSError as error:
            report(Judged(os.strerror(error.errno or 0), False))

    came = ended(fill, Limits(folder_bytes=4 << 20))
    assert [each.case for each in came.judged] == ["No space left on device"]
    assert not list(folder.iterdir())
