"""The folder of a run. It is created first and filled during the run. At any time, its files state
only what the run has achieved so far."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

NOT_BEGUN = {"ok": False, "reason": "the run was not begun"}
NOT_FINISHED = {"ok": False, "reason": "the run did not finish"}

OWNER_ENDS_S = 5.0
"""How long a run waits for the processes of a killed run to end, in seconds."""


class ResultsError(Exception):
    """Raised if the results cannot be written. The message is one line."""


class RunFolder:
    """The folder `results/<scenario>/<run-id>/`, or the folder of one point or contender inside
    it."""

    def __init__(self, path: Path, new: bool = True) -> None:
        """new: whether to create the folder. Until other metrics are written, the metrics.json of a
        new folder says that the run did not finish."""
        self.path = path
        self.logs = path / "logs"
        if new:
            self._make()

    def _make(self) -> None:
        try:
            self.logs.mkdir(parents=True)
            self.write_json("metrics.json", NOT_FINISHED)
        except OSError as error:
            raise ResultsError(f"{error.filename or self.path}: {error.strerror}") from None

    def point(self, number: int) -> RunFolder:
        """Returns a new folder for the point with this number."""
        return RunFolder(self.path / point_folder(number))

    def contender(self, name: str) -> RunFolder:
        """Returns a new folder for one contender."""
        return RunFolder(self.path / name)

    def metrics(self) -> dict[str, Any]:
        """Returns the content of metrics.json. If there is no such file, returns the metrics of a
        run that did not finish."""
        path = self.path / "metrics.json"
        metrics = json.loads(path.read_text()) if path.is_file() else NOT_FINISHED
        assert isinstance(metrics, dict)
        return metrics

    @contextlib.contextmanager
    def owned(self) -> Iterator[None]:
        """Keeps other programs from filling the same folder while the context lasts. The kernel
        removes the lock when the program ends, also if it is killed."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if not _locked(descriptor):
                raise ResultsError(f"{self.path}: another run is filling this folder")
            yield
        finally:
            os.close(descriptor)

    def write(self, name: str, text: str) -> None:
        """Writes a file completely or not at all, so that a reader never sees a part. Characters
        that UTF-8 cannot encode become '?'."""
        part = self.path / f".{name}.part"
        part.write_text(text, encoding="utf-8", errors="replace")
        os.replace(part, self.path / name)

    def write_json(self, name: str, value: Any) -> None:
        self.write(name, json.dumps(value, indent=2, allow_nan=False) + "\n")

    def fail(self, reason: str) -> None:
        """Writes into metrics.json why there is no result, unless the file already says more. If
        the disk is full, the file is kept as it is."""
        if self.metrics() == NOT_FINISHED:
            with contextlib.suppress(OSError):
                self.write_json("metrics.json", {"ok": False, "reason": reason})


def _locked(descriptor: int) -> bool:
    """Locks a folder. Returns whether that was possible within OWNER_ENDS_S seconds."""
    until_s = time.monotonic() + OWNER_ENDS_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until_s:
                return False
            time.sleep(0.05)


def point_folder(number: int) -> str:
    return f"point-{number}"


class EventLog:
    """The file events.jsonl, with one JSON object in each line. Each line has the time `t_ns`,
    which `now_ns` returns, and the lines are in its order."""

    def __init__(self, path: Path, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._now_ns = now_ns
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()

    def add(self, event: str, **fields: Any) -> None:
        with self._lock:
            record = {"t_ns": self._now_ns(), "event": event, **fields}
            self._file.write(json.dumps(record) + "\n")

    def close(self) -> None:
        self._file.close()


def new_run_folder(results: Path, scenario: str) -> RunFolder:
    """Returns a new folder that no other run has. The link `latest` now points to it."""
    folder = RunFolder(_new_path(results / scenario))
    _point_latest_to(folder.path)
    return folder


def _new_path(runs: Path) -> Path:
    """Returns a path with the time and a random number, which an earlier run of the same second may
    have drawn too."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    path = runs / f"{stamp}-{secrets.token_hex(2)}"
    return _new_path(runs) if os.path.lexists(path) else path


def _point_latest_to(path: Path) -> None:
    part = path.parent / f".latest-{path.name}"
    part.symlink_to(path.name)
    os.replace(part, path.parent / "latest")
