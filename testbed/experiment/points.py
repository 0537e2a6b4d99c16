"""Runs the points of a suite, one after the other or concurrently, each in its own folder. Points
that are already finished in that folder, by an earlier run of the same suite, are kept."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path
from typing import TextIO

from agglab.testbed.base.exit_codes import PASSED
from agglab.testbed.experiment import dask_points
from agglab.testbed.experiment.interleaved_runs import Run, take_turns
from agglab.testbed.experiment.memory import memory_needed_bytes
from agglab.testbed.experiment.point_group import Group, ends_sweep
from agglab.testbed.experiment.point_pool import PointPool
from agglab.testbed.results.provenance import code_below, code_sha256, memory_available_bytes
from agglab.testbed.run.programs.prepare import Prepared
from agglab.testbed.run.result_folder import RunFolder, point_folder
from agglab.testbed.scenario import Point, Suite, to_yaml
from agglab.testbed.scenario.load import POINTS_MAX
from p4native.common.printable import plain


def in_random_order(groups: Sequence[Group], seed: int) -> list[Group]:
    """Returns the points in random order, so that changes of the machine over time do not look like
    effects of a swept key. If all points are in virtual time, they keep their order."""
    if all(point.resolved.virtual for group in groups for point, _ in group.runs):
        return list(groups)
    return random.Random(f"{seed}/order of points").sample(groups, len(groups))


class Points:
    """The points of a suite. folder: the suite's folder. processes: how many points may run at
    once."""

    def __init__(
        self,
        suite: Suite,
        prepared: Sequence[Prepared],
        folder: RunFolder,
        processes: int,
        out: TextIO,
        scheduler: str | None = None,
    ) -> None:
        """scheduler: the address of a Dask scheduler that runs the points on other machines; None
        to run them here."""
        self._suite, self._folder, self._out = suite, folder, out
        self._processes, self._scheduler = processes, scheduler
        numbered = iter(prepared)
        self._code = code = code_sha256()
        self._groups = [
            self._group(number, group, [next(numbered) for _ in group], code)
            for number, group in enumerate(suite.groups)
        ]

    def _group(
        self, number: int, points: Sequence[Point], prepared: Sequence[Prepared], code: str
    ) -> Group:
        path = self._folder.path
        own = (
            RunFolder(path / point_folder(number), new=False) if self._suite.axes else self._folder
        )
        runs = tuple(zip(points, prepared, strict=True))
        return Group(number, plain(points[0].label), runs, own, key_of(runs, code))

    def run(self, scratch: Path) -> int:
        """Runs the points that are not finished. Returns PASSED; FAILED if a point was aborted; or
        the exit code of the point after which no other was begun (`ends_sweep`)."""
        waiting = [group for group in self._groups if not group.is_done]
        if len(waiting) < len(self._groups):
            kept = len(self._groups) - len(waiting)
            self._say(f"{kept} of {len(self._groups)} points were already finished")
        if self._scheduler:
            return dask_points.run(self._scheduler, waiting, self._code, self._say)
        if self._processes > 1 and len(waiting) > 1:
            return PointPool(waiting, self._processes, self._conduct, self._say).run(scratch)
        return self._one_by_one(waiting, scratch)

    def _one_by_one(self, waiting: Sequence[Group], scratch: Path) -> int:
        code = PASSED
        for group in in_random_order(waiting, self._suite.points[0].resolved.seed):
            if self._suite.axes:
                self._say(f"{group.label} ({group.number + 1} of {len(self._groups)})")
            code = max(code, self._conduct(group, scratch, self._out))
            if ends_sweep(code):
                break
        return code

    def _say(self, text: str) -> None:
        print(f"{self._suite.name}: {text}", file=self._out, flush=True)

    def _conduct(self, group: Group, scratch: Path, out: TextIO) -> int:
        """Runs the runs of one point in turns."""
        if self._suite.axes:
            return conduct(group, scratch, out)
        return take_turns(_runs(group, self._folder, scratch, out))


def conduct(group: Group, scratch: Path, out: TextIO) -> int:
    """Runs the runs of one point of a sweep in turns, in a new folder that replaces the point's old
    one. If a process of theirs was killed, runs them once more. Returns PASSED, or the exit code of
    the first run that was aborted."""
    code, killed = _attempt(group, scratch, out)
    if killed:
        print(f"{group.label}: {killed}; the point is run once more", file=out, flush=True)
        code, killed = _attempt(group, scratch, out)
    if not code and not killed:
        group.finish()
    return code


def _attempt(group: Group, scratch: Path, out: TextIO) -> tuple[int, str]:
    """Runs the runs of a point. Returns the exit code, and who was killed from outside; "" if
    nobody was."""
    shutil.rmtree(group.folder.path, ignore_errors=True)
    own = RunFolder(group.folder.path)
    runs = _runs(group, own, scratch, out)
    for run, (point, _) in zip(runs, group.runs, strict=True):
        if run.folder is own:
            own.write("scenario.yaml", to_yaml(point.resolved))
    code = take_turns(runs)
    return code, next((run.killed for run in runs if run.killed), "")


def _runs(group: Group, own: RunFolder, scratch: Path, out: TextIO) -> list[Run]:
    runs = []
    for number, (point, prepared) in enumerate(group.runs):
        place = own
        if point.contender:
            place = own.contender(point.contender)
            place.write("scenario.yaml", to_yaml(point.resolved))
        # Not the contender's name: the path of a Unix socket has at most 107 bytes.
        sockets = _unused(scratch / f"{group.number}-{number}")
        runs.append(Run(point, prepared, place, sockets, out))
    return runs


def _unused(path: Path) -> Path:
    """Returns this path, or a similar one if an attempt that was killed has left the folder."""
    similar = (path.with_name(f"{path.name}-{n}") for n in count(2))
    return next(each for each in chain([path], similar) if not each.exists())


def processes_for(suite: Suite, asked: int | None) -> int:
    """Returns how many points of a suite run at once. This is `asked` if the user has given it;
    otherwise it follows from the number of processors and the memory. Runs on real links measure
    the machine, so their points run one at a time."""
    if any(not point.resolved.virtual for point in suite.points):
        return 1
    if asked:
        return asked
    need = max(sum(memory_needed_bytes(p.resolved) for p in group) for group in suite.groups)
    fitting = memory_available_bytes() // need if need else POINTS_MAX
    return max(1, min(len(os.sched_getaffinity(0)), fitting))


def key_of(runs: Sequence[tuple[Point, Prepared]], code: str) -> str:
    """Returns a hash of everything on which the results of a point depend. Modules that the user's
    own modules import are not included."""
    digest = hashlib.sha256(code.encode())
    for point, prepared in runs:
        digest.update(to_yaml(point.resolved).encode())
        for switch, program in sorted(prepared.programs.items()):
            digest.update(f"{switch} {program.json_sha256}".encode())
        for path in sorted(_own_files(point)):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _own_files(point: Point) -> set[Path]:
    """Returns the user's own Python files and table entries, and all code of a system that is a
    package."""
    scenario = point.resolved.scenario
    specs = [scenario.system, scenario.workload.worker, *(j.workload.worker for j in scenario.jobs)]
    named = {Path(spec.rpartition(":")[0]) for spec in specs if ".py:" in spec}
    entries = Path(scenario.switch.entries) if scenario.switch.entries else None
    if entries and entries.is_dir():
        named |= set(entries.iterdir())
    elif entries:
        named.add(entries)
    folders = {path.parent for path in named if (path.parent / "__init__.py").is_file()}
    named |= {path for folder in folders for path in code_below(folder)}
    return {path for path in named if path.is_file()}
