"""Runs one point of a sweep for a Dask worker (dask_points.py), in a separate process:

`python -m agglab.testbed.cli.one_point FILE FOLDER PARENT`
"""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from agglab.testbed.base.exit_codes import INVALID
from agglab.testbed.base.kernel import die_with_parent
from agglab.testbed.base.scratch import scratch_folder
from agglab.testbed.cli.main import guarded
from agglab.testbed.experiment.point_group import Group
from agglab.testbed.experiment.points import code_sha256, conduct, key_of
from agglab.testbed.run.programs.prepare import compile_points, load_workers
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import Point, load
from p4native.common.c_build import cache_folder

OTHER_CODE = (
    "this worker has another version of agglab than the program that asks it: install the same "
    "version on both"
)


def main(words: Sequence[str]) -> int:
    """Runs the point that FILE describes, writes its results into FOLDER, and ends when the process
    PARENT ends. The exit codes are those of `agglab run`."""
    told, folder, parent = words
    die_with_parent(int(parent))
    return guarded(lambda _: _run(Path(told), Path(folder)), [])


def _run(told: Path, folder: Path) -> int:
    asked = json.loads(told.read_text())
    code = code_sha256()
    if asked["code"] != code:
        print(OTHER_CODE, file=sys.stderr)
        return INVALID
    points = [_point(told.parent, *run) for run in asked["runs"]]
    runs = tuple(zip(points, compile_points(points), strict=True))
    load_workers(points)
    own = RunFolder(folder, new=False)
    group = Group(asked["number"], asked["label"], runs, own, key_of(runs, code))
    return _contained(points, lambda scratch: conduct(group, scratch, sys.stdout))


def _point(folder: Path, contender: str, text: str) -> Point:
    path = folder / f"run{contender}.yaml"
    path.write_text(text)
    (point,) = load(path).points
    return replace(point, contender=contender)


def _contained(points: Sequence[Point], run: Callable[[Path], int]) -> int:
    """Runs the points. Runs on real links measure the machine, so only one takes place at a time,
    whichever process started it."""
    if points[0].resolved.virtual:
        with scratch_folder() as scratch:
            return run(scratch)
    from agglab.testbed.real import isolated

    cache_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    with (cache_folder() / "real-run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return isolated(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
