"""`scenario`: run scenarios as a user does, each in a process of its own that carries a marker.

`lab`: the namespaces of a switch and three hosts. Makes this folder's modules importable by tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs
import pytest
from waiting import until

from agglab.testbed.base.exit_codes import LACKING

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "toolchain/tests/root")]

from fixtures import lab, stub_path  # noqa: E402, F401

MARKER = "AGGLAB_TEST_SCENARIO"
PYTEST_ONLY = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"  # set by tests/conftest.py


class Runs:
    """`run` waits for the end; `start` does not. `run` skips the test if the machine lacks what the
    run needs; `run_with_programs` does not."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.marker = uuid.uuid4().hex
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """`agglab run WORDS` in a session of its own, with a user's environment."""
        own = {k: v for k, v in os.environ.items() if k != PYTEST_ONLY}
        process = subprocess.Popen(
            [sys.executable, "-m", "agglab.testbed", "run", *words, "--results", str(self.results)],
            cwd=ROOT,
            env={**own, MARKER: self.marker, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def run(self, *words: str, **environment: str) -> Ended:
        ended = self._end(self.start(*words, **environment))
        if ended.code == LACKING:
            needs.skip_if_said_lacking(ended.err)
        return ended

    def run_with_programs(self, folder: Path, *words: str) -> Ended:
        """A run that has only the programs of this folder."""
        return self._end(self.start(*words, PATH=str(folder)))

    def _end(self, process: subprocess.Popen[str]) -> Ended:
        out, err = process.communicate()
        return Ended(process.returncode, out, err, self.results)

    def write(self, text: str) -> str:
        """A scenario file of the test's own; returns its path."""
        path = self.results.parent / f"{uuid.uuid4().hex[:8]}.yaml"
        path.write_text(text)
        return str(path)

    def processes(self) -> dict[int, str]:
        """pid -> command line of everything that these runs started and that is alive."""
        marker = f"{MARKER}={self.marker}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if marker in (entry / "environ").read_bytes().split(b"\0"):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    found[int(entry.name)] = b" ".join(words).decode()
            except (OSError, ValueError):
                continue
        return found

    def await_event(self, scenario: str, event: str, contender: str = "") -> Path:
        """The folder of the latest run, or its contender's, once it has recorded such an event."""
        log = self.results / scenario / "latest" / contender / "events.jsonl"
        until(lambda: log.is_file() and f'"event": "{event}"' in log.read_text(), event)
        return log.parent.resolve()

    def stop(self) -> None:
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()


class Ended:
    """What a run left: exit code, output, and its folder."""

    def __init__(self, code: int, out: str, err: str, results: Path) -> None:
        self.code = code
        self.out = out
        self.err = err
        folders = [path for path in results.glob("*/2*") if not path.is_symlink()]
        self.folder = max(folders, key=lambda path: path.stat().st_ctime_ns, default=None)

    @property
    def metrics(self) -> dict[str, Any]:
        return self.json("metrics.json")

    def json(self, name: str) -> Any:
        assert self.folder, self.err
        return json.loads((self.folder / name).read_text())

    def events(self, kind: str) -> list[dict[str, Any]]:
        assert self.folder
        lines = (self.folder / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path / "results")
    yield runs
    runs.stop()
