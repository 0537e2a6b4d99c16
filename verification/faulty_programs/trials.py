"""Runs a program several times and counts the verdicts."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agglab.testbed.base.exit_codes import FAILED, PASSED, UNDECIDED
from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.scenario import load
from agglab.verification.faulty_programs.catalogue import FaultyProgram

WORDS = {PASSED: "passed", FAILED: "failed", UNDECIDED: "undecided"}
OTHER = "not run"
BUSY = "while True: pass"


class NotRun(Exception):
    """Raised if a run neither passed nor failed. The message is what it printed last."""


def verdicts(
    program: FaultyProgram, runs: int, jobs: int, settings: tuple[str, ...] = ()
) -> Counter[str]:
    """Runs the program `runs` times, `jobs` at once, and returns how often each verdict came.
    Raises NotRun."""
    with tempfile.TemporaryDirectory(prefix="agglab-program-") as scratch:
        folder = Path(scratch)
        command = _command(program, folder, settings)
        with ThreadPoolExecutor(jobs) as pool:
            words = pool.map(lambda number: _run(command, folder / str(number)), range(runs))
            return Counter(words)


def _command(program: FaultyProgram, folder: Path, settings: tuple[str, ...]) -> list[str]:
    """Writes the program and its scenario, and returns the command that runs it, without the
    folder for results."""
    p4 = folder / "p4"
    shutil.copytree(P4_FOLDER, p4)
    program.write(p4)
    path = folder / "scenario.yaml"
    path.write_text(json.dumps({"name": program.id, "system": program.system, **program.scenario}))
    (point,) = load(path).points
    (file,) = {source.path.name for source in point.resolved.programs.values()}
    own = (f"switch.program={p4 / file}", *settings)
    words = [word for setting in own for word in ("--set", setting)]
    return [sys.executable, "-m", "agglab.testbed", "run", str(path), *words, "--results"]


def _run(command: list[str], results: Path) -> str:
    done = subprocess.run([*command, str(results)], capture_output=True, text=True)
    if done.returncode not in WORDS:
        raise NotRun((done.stderr or done.stdout).strip())
    shutil.rmtree(results, ignore_errors=True)
    return WORDS[done.returncode]


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keeps this many processes busy while the block runs."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def processors() -> int:
    return len(os.sched_getaffinity(0))
