"""Runs the points of a sweep on other machines: `agglab run SWEEP --scheduler tcp://HOST:PORT`.

The scheduler and its workers are Dask's (`agglab[dask]`). Each worker needs the same version of
Agglab, and the user's own files at the same path. A point is sent as its resolved scenario, runs in
a new process (`python -m agglab.testbed.cli.one_point`), and comes back as the files of its folder.
If a worker ends before its point is finished, the scheduler gives the point to another worker. If
only the point's process is killed, its worker starts it once more. Each machine runs only one real
run at a time, however many workers it has.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agglab.testbed.base.command_lines import extra
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.exit_codes import FAILED, INTERRUPTED, LACKING, PASSED
from agglab.testbed.base.scratch import note_elsewhere, scratch_folder
from agglab.testbed.experiment.point_group import Group, progress_text
from agglab.testbed.scenario import to_yaml
from p4native.common.processes import exit_in_words

NO_DASK = MachineLacks("the Python package distributed", extra("dask"))
CONNECT_S = 10
LINES_KEPT = 5


class Unusable(Exception):
    """Raised if the scheduler cannot be used. The message is one line."""


def check(scheduler: str, is_sweep: bool) -> None:
    """Checks that the scheduler can be used. Raises Unusable, or MachineLacks if Dask is not
    installed."""
    if not is_sweep:
        raise Unusable("--scheduler is for sweeps, and this scenario has no sweep")
    parts = urlsplit(scheduler)
    if parts.scheme not in ("tcp", "tls") or not parts.hostname:
        raise Unusable(f"--scheduler: '{scheduler}' is not tcp://HOST:PORT")
    _dask()


def run(scheduler: str, groups: Sequence[Group], code: str, say: Callable[[str], None]) -> int:
    """Lets Dask workers run all points. code: the hash of the source that each worker must have.
    Returns the same as Points.run. Raises Unusable."""
    dask = _dask()
    with _client(dask, scheduler) as client:
        points = {
            client.submit(work, _point_file(group, code), pure=False): group for group in groups
        }
        try:
            return _gathered(dask, points, say)
        except KeyboardInterrupt:
            client.cancel(list(points))
            return INTERRUPTED


def _gathered(dask: Any, points: Mapping[Any, Group], say: Callable[[str], None]) -> int:
    code, began_s = PASSED, time.monotonic()
    for ended, future in enumerate(dask.as_completed(list(points)), start=1):
        group = points[future]
        try:
            status, output, files = future.result()
        except Exception as error:  # whatever a worker raises comes here
            status, output, files = FAILED, f"{type(error).__name__}: {error}", b""
        left = len(points) - ended
        left_s = left * (time.monotonic() - began_s) / ended
        say(f"{group.label} ({progress_text(ended, left, left_s)})")
        if files:
            _unpack(files, group.folder.path)
        if not status:
            group.finish()
        else:
            print(f"{group.label}: {output.strip()}", file=sys.stderr)
        code = max(code, status)
    return code


def _dask() -> Any:
    try:
        return importlib.import_module("distributed")
    except ModuleNotFoundError:
        raise NO_DASK from None


@contextmanager
def _client(dask: Any, scheduler: str) -> Iterator[Any]:
    try:
        client = dask.Client(scheduler, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise Unusable(f"--scheduler: {scheduler} cannot be reached: {error}") from None
    with client:
        yield client


def _point_file(group: Group, code: str) -> str:
    """Returns the description of a point for one_point.py."""
    runs = [(point.contender, to_yaml(point.resolved)) for point, _ in group.runs]
    told = {"number": group.number, "label": group.label, "runs": runs, "code": code}
    return json.dumps(told)


def _unpack(files: bytes, folder: Path) -> None:
    """Writes the files and replaces the folder's previous content."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        for member in archive.getmembers():
            inside = (folder / member.name).resolve()
            if inside.is_relative_to(folder.resolve()) and (member.isfile() or member.isdir()):
                archive.extract(member, folder, set_attrs=False)


# At a worker.


def work(point: str) -> tuple[int, str, bytes]:
    """Runs a point; returns the exit code, the last line of output, and the files of its folder."""
    try:
        with scratch_folder() as scratch, _noted_folder(scratch) as own:
            return _run_in(own, point)
    except MachineLacks as error:
        return LACKING, str(error), b""


def _run_in(own: Path, point: str) -> tuple[int, str, bytes]:
    told, folder = own / "point.json", own / "point"
    told.write_text(point)
    words = [sys.executable, "-m", "agglab.testbed.cli.one_point", str(told), str(folder)]
    done = _process(words)
    if done.returncode < 0:
        shutil.rmtree(folder, ignore_errors=True)
        done = _process(words)
    said = "; ".join(done.stderr.strip().splitlines()[-LINES_KEPT:])
    if done.returncode < 0:
        return FAILED, f"its process {exit_in_words(done.returncode)}, twice", _packed(folder)
    return done.returncode, said, _packed(folder)


def _process(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*words, str(os.getpid())], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


@contextmanager
def _noted_folder(scratch: Path) -> Iterator[Path]:
    """Yields a new folder for results, for which `scratch` may have no room. If this process is
    killed, the next run removes it."""
    with tempfile.TemporaryDirectory(prefix="agglab-point-") as folder:
        note_elsewhere(scratch, Path(folder))
        yield Path(folder)


def _packed(folder: Path) -> bytes:
    if not folder.is_dir():
        return b""
    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w:gz") as archive:
        archive.add(folder, arcname=".")
    return files.getvalue()
