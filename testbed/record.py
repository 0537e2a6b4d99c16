"""A run's folder: made first, filled as the run goes, and never looking better than the run was."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

NOT_FINISHED = {"ok": False, "reason": "the run was not finished"}


class ResultsError(Exception):
    """The results cannot be written; one line."""


class RunFolder:
    """`results/<scenario>/<run-id>/`, or inside it the folder of one point, or of one contender."""

    def __init__(self, path: Path, new: bool = True) -> None:
        """new: makes the folder; until something else is written there, its metrics.json says that
        the run did not finish."""
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
        """A folder for the n-th run of a sweep."""
        return RunFolder(self.path / point_folder(number))

    def contender(self, name: str) -> RunFolder:
        """A folder for one of those that are compared."""
        return RunFolder(self.path / name)

    def metrics(self) -> dict[str, Any]:
        """What its metrics.json holds; of a folder that was never made, that the run did not
        finish."""
        path = self.path / "metrics.json"
        metrics = json.loads(path.read_text()) if path.is_file() else NOT_FINISHED
        assert isinstance(metrics, dict)
        return metrics

    def write(self, name: str, text: str) -> None:
        """All or nothing: a reader never sees half a file. Names that are no UTF-8 get a '?'."""
        part = self.path / f".{name}.part"
        part.write_text(text, encoding="utf-8", errors="replace")
        os.replace(part, self.path / name)

    def write_json(self, name: str, value: Any) -> None:
        self.write(name, json.dumps(value, indent=2, allow_nan=False) + "\n")

    def fail(self, reason: str) -> None:
        """Say why there is no result; a metrics.json that already says more is kept, and so is the
        first one where the disk is full."""
        if self.metrics() == NOT_FINISHED:
            with contextlib.suppress(OSError):
                self.write_json("metrics.json", {"ok": False, "reason": reason})


def point_folder(number: int) -> str:
    return f"point-{number}"


class EventLog:
    """events.jsonl: one object a line, in the order of `t_ns`, which `now_ns` gives."""

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
    """A folder that no other run has, and the link `latest` to it."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    folder = RunFolder(results / scenario / f"{stamp}-{secrets.token_hex(2)}")
    _point_latest_to(folder.path)
    return folder


def _point_latest_to(path: Path) -> None:
    part = path.parent / f".latest-{path.name}"
    part.symlink_to(path.name)
    os.replace(part, path.parent / "latest")
