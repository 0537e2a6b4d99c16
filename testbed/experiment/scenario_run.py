"""Runs a checked scenario and fills a result folder: checks the machine, compiles, runs, verifies
and reports."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from agglab.testbed import report
from agglab.testbed.base import processors
from agglab.testbed.base.errors import C_COMPILER, MachineLacks, lacks_program
from agglab.testbed.base.exit_codes import FAILED, INTERRUPTED, LACKING, PASSED
from agglab.testbed.base.garbage_collection import seldom_collected
from agglab.testbed.base.scratch import check_usable, scratch_folder
from agglab.testbed.base.terminal import cannot_write, is_full
from agglab.testbed.experiment import dask_points
from agglab.testbed.experiment.memory import memory_needed_bytes
from agglab.testbed.experiment.points import Points, processes_for
from agglab.testbed.judge.verdicts import CODES, verdict_of
from agglab.testbed.report import vega
from agglab.testbed.report.summary import summary
from agglab.testbed.results.provenance import manifest, memory_available_bytes
from agglab.testbed.results.side_by_side import comparison, sweep
from agglab.testbed.run.programs.prepare import compile_points, load_workers
from agglab.testbed.run.programs.unused_keys import notes
from agglab.testbed.run.result_folder import (
    NOT_BEGUN,
    NOT_FINISHED,
    ResultsError,
    RunFolder,
    new_run_folder,
    point_folder,
)
from agglab.testbed.scenario import Suite, suite_to_yaml, workloads
from p4native.common.printable import plain


def run(
    suite: Suite,
    results: Path,
    settings: Sequence[str],
    out: TextIO,
    metrics_out: TextIO | None = None,
    resume: Path | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
) -> int:
    """Runs every point, prints the summary and returns the exit code.

    metrics_out: a stream that also receives metrics.json. resume: the folder of an earlier run of
    the same sweep, whose finished points are kept. processes: how many points in virtual time may
    run at once; by default, one for each processor. scheduler: for a sweep, the address of a Dask
    scheduler that runs the points on other machines (dask_points.py).

    Raises MachineLacks, CompileError, ScenarioError or ResultsError before anything has started.
    """
    if scheduler:
        dask_points.check(scheduler, bool(suite.axes))
    else:
        check_machine(suite)
    prepared = compile_points(suite.points)
    every = [program for own in prepared for program in own.programs.values()]
    load_workers(suite.points)
    for line in notes(suite.points, prepared):
        print(plain(f"note: {line}"), file=out)
    asked = suite_to_yaml(suite)
    folder = _earlier(resume, suite, asked) if resume else new_run_folder(results, suite.name)
    with folder.owned(), seldom_collected():
        folder.write_json("metrics.json", NOT_FINISHED)
        folder.write("scenario.yaml", asked)
        folder.write_json("manifest.json", manifest(suite, every, settings))
        points = Points(suite, prepared, folder, processes_for(suite, processes), out, scheduler)
        code = contained(suite, points.run, bool(scheduler))
        metrics = _conclude(suite, folder, code, out)
    if metrics_out:
        print((folder.path / "metrics.json").read_text(), end="", file=metrics_out, flush=True)
    return CODES[verdict_of(metrics)] if code in (PASSED, FAILED) else code


def _earlier(path: Path, suite: Suite, asked: str) -> RunFolder:
    """Returns the folder of an earlier run of this suite. Raises ResultsError if the folder at
    `path` is not one."""
    if not suite.axes:
        raise ResultsError(f"{path}: only sweeps can be resumed, and {suite.name} has no sweep")
    try:
        before = (path / "scenario.yaml").read_text(encoding="utf-8")
        if before != asked:
            raise ResultsError(f"{path}: holds results of another scenario than {suite.source}")
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: is not the result folder of a sweep: {error}") from None
    return RunFolder(path, new=False)


def check_machine(suite: Suite) -> None:
    """Raises MachineLacks if this machine lacks something that the runs need."""
    check_usable()
    if suite.figure and suite.figure.format:
        vega.check()
    for group in suite.groups:
        runs = [point.resolved for point in group]
        for resolved in runs:
            wanted = [resolved.system.lacks(resolved)]
            wanted += [workloads.KINDS[j.work.kind].lacks(j.work) for j in resolved.jobs]
            for what, remedy in chain.from_iterable(wanted):
                raise MachineLacks(what, remedy)
        if not runs[0].virtual:
            from agglab.testbed.real import lacks, require_target

            for missing in lacks(runs[0].graph, runs[0].faults):
                raise missing
            for target in {resolved.target for resolved in runs}:
                require_target(target)
        elif not (shutil.which("cc") or shutil.which("gcc")):
            raise lacks_program(*C_COMPILER)
        else:
            processors.allowed()
        need, free = sum(map(memory_needed_bytes, runs)), memory_available_bytes()
        if need > free:
            what = (
                f"memory: the run needs {need / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free"
            )
            raise MachineLacks(what, "use fewer elements, workers or slots")


def contained(suite: Suite, run: Callable[[Path], int], is_elsewhere: bool) -> int:
    """Runs the suite by calling `run`. Runs on real links are put into new namespaces. Virtual
    networks and runs on other machines need no isolation."""
    if not is_elsewhere and any(not point.resolved.virtual for point in suite.points):
        from agglab.testbed.real import isolated

        return isolated(run)
    with scratch_folder() as scratch:
        return run(scratch)


def _conclude(suite: Suite, folder: RunFolder, code: int, out: TextIO) -> dict[str, Any]:
    """Completes the results and prints the summary after the network was removed, however the run
    ended. Returns the metrics."""
    try:
        _complete(suite, folder, code)
    except OSError as error:
        if not is_full(error):
            raise
        print(cannot_write(error, folder.path), file=sys.stderr)
    metrics = folder.metrics()
    print(plain(summary(suite.name, metrics, folder.path)), file=out, flush=True)
    return metrics


def _complete(suite: Suite, folder: RunFolder, code: int) -> None:
    """Writes the metrics of all runs together, the hashes of their events, and the report."""
    points = []
    for number, group in enumerate(suite.groups):
        own = RunFolder(folder.path / point_folder(number), new=False) if suite.axes else folder
        settings = dict(group[0].settings)
        metrics = _of_point(suite, own, code, settings)
        points.append({"settings": settings, "metrics": metrics})
    if suite.axes:
        folder.write_json("metrics.json", sweep(points, suite.growth))
    _add_hashes(suite, folder)
    report.write(folder.path)


def _of_point(
    suite: Suite, folder: RunFolder, code: int, settings: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the metrics of one point, whose folder may never have been created."""
    runs = {name: _of_run(RunFolder(folder.path / name, new=False), code) for name in _names(suite)}
    if not suite.contenders:
        return runs[""]
    expected = [each for each in suite.ratios if each.concerns(settings.values())]
    metrics = comparison(runs, expected)
    if folder.path.is_dir():
        folder.write_json("metrics.json", metrics)
    return metrics


def _of_run(folder: RunFolder, code: int) -> dict[str, Any]:
    """Returns the metrics of one run. code: the exit code of the whole command. If it is above
    LACKING, it tells how this run ended, unless this run was already complete."""
    if code > LACKING and folder.path.is_dir():
        folder.fail("interrupted" if code == INTERRUPTED else f"killed by signal {code - 128}")
    return folder.metrics() if folder.path.is_dir() else NOT_BEGUN


def _names(suite: Suite) -> tuple[str, ...]:
    """Returns the names of the folders of a point's runs."""
    return suite.contenders or ("",)


def _add_hashes(suite: Suite, folder: RunFolder) -> None:
    """Adds `events_sha256` to the manifest of runs in virtual time, whose events are the same in
    each repetition."""
    if any(not point.resolved.virtual for point in suite.points):
        return
    places = [point_folder(n) for n in range(len(suite.groups))] if suite.axes else [""]
    logs = [folder.path / p / name / "events.jsonl" for p in places for name in _names(suite)]
    hashes = [hashlib.sha256(log.read_bytes()).hexdigest() for log in logs if log.is_file()]
    manifest = json.loads((folder.path / "manifest.json").read_text())
    value = hashes if suite.axes or suite.contenders else "".join(hashes)
    folder.write_json("manifest.json", {**manifest, "events_sha256": value})
