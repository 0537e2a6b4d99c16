"""A checked scenario file to a result folder: check the machine, compile, run, judge, report."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from agglab.hosts.own_worker import WorkerError
from agglab.testbed import report
from agglab.testbed.agents import AgentFailed
from agglab.testbed.errors import C_COMPILER, MachineLacks, NodeFailed, lacks_program
from agglab.testbed.exit_codes import FAILED, INTERRUPTED, LACKING, PASSED
from agglab.testbed.experiment import Experiment
from agglab.testbed.machine_facts import manifest, memory_available_bytes
from agglab.testbed.measurements import Measurements
from agglab.testbed.metrics import (
    compute,
    failures,
    lookup,
    memory_needed_bytes,
    shortcomings,
    show,
)
from agglab.testbed.prepare import compile_points, load_workers
from agglab.testbed.program import Program
from agglab.testbed.record import NOT_FINISHED, RunFolder, new_run_folder
from agglab.testbed.scenario import Point, Suite, suite_to_yaml, to_yaml
from agglab.testbed.scenario.errors import one_line
from agglab.testbed.scenario.metric_names import GROWTH
from agglab.testbed.scratch import check_usable, scratch_folder
from agglab.testbed.summary import run_summary, sweep_summary
from agglab.testbed.terminal import cannot_write, is_full, plain


def run(
    suite: Suite,
    results: Path,
    settings: Sequence[str],
    out: TextIO,
    metrics_out: TextIO | None = None,
) -> int:
    """Run every point and print the summary; returns the exit code. metrics_out: is given
    metrics.json, too.

    Raises MachineLacks, CompileError, ScenarioError or ResultsError before anything has started.
    """
    _check_machine(suite)
    programs = compile_points(suite.points)
    load_workers(suite.points)
    folder = new_run_folder(results, suite.name)
    folder.write("scenario.yaml", suite_to_yaml(suite))
    folder.write_json("manifest.json", manifest(suite, programs, settings))
    code = _contained(suite, lambda scratch: _run_points(suite, programs, folder, scratch, out))
    _conclude(suite, folder, code, out)
    if metrics_out:
        print((folder.path / "metrics.json").read_text(), end="", file=metrics_out, flush=True)
    return code if code not in (PASSED, FAILED) else _verdict(folder)


def _check_machine(suite: Suite) -> None:
    check_usable()
    for point in suite.points:
        resolved = point.resolved
        if not resolved.virtual:
            from agglab.testbed.network import lacks, require_target

            for missing in lacks(resolved.graph, resolved.faults):
                raise missing
            require_target(resolved.target)
        elif not (shutil.which("cc") or shutil.which("gcc")):
            raise lacks_program(*C_COMPILER)
        need, free = memory_needed_bytes(resolved), memory_available_bytes()
        if need > free:
            what = f"memory: {need / 2**30:.1f} GiB are needed, {free / 2**30:.1f} GiB are free"
            raise MachineLacks(what, "take fewer elements, workers or slots")


def _contained(suite: Suite, run: Callable[[Path], int]) -> int:
    """Real networks run in namespaces of their own; virtual ones leave nothing to contain."""
    if any(not point.resolved.virtual for point in suite.points):
        from agglab.testbed.network import isolated

        return isolated(run)
    with scratch_folder() as scratch:
        return run(scratch)


def _run_points(
    suite: Suite, programs: Sequence[Program], folder: RunFolder, scratch: Path, out: TextIO
) -> int:
    """Inside the namespaces. Exceptions end here, as a reason in the folder and a line or two."""
    for number, (point, program) in enumerate(zip(suite.points, programs, strict=True)):
        own = folder.point(number) if suite.axes else folder
        if suite.axes:
            own.write("scenario.yaml", to_yaml(point.resolved))
            label = plain(point.label)
            print(f"{suite.name}: {label} ({number + 1} of {len(suite.points)})", file=out)
        try:
            _run_point(point, program, own, scratch / f"p{number}", out)
        except (NodeFailed, AgentFailed, MachineLacks, WorkerError) as error:
            own.fail(str(error))
            text = error.report() if isinstance(error, NodeFailed) else str(error)
            print(plain(text), file=sys.stderr)
            return LACKING if isinstance(error, MachineLacks) else FAILED
        except KeyboardInterrupt:
            own.fail("interrupted")
            return INTERRUPTED
        except Exception as error:
            print(_broken(error, own), file=sys.stderr)
            return FAILED
    return PASSED


def _broken(error: Exception, folder: RunFolder) -> str:
    """One line, kept in the folder too; a bug of ours leaves its trace in a file."""
    if is_full(error):
        line = cannot_write(error, folder.path)
        folder.fail(line)
        return line
    log = folder.logs / "testbed.log"
    log.write_text(traceback.format_exc())
    what = f"internal error: {one_line(repr(error), 200)}"
    folder.fail(what)
    return f"{what}; the trace is in {log}"


def _run_point(
    point: Point, program: Program, folder: RunFolder, scratch: Path, out: TextIO
) -> None:
    measured = Experiment(point.resolved, program, folder, scratch, out).measure()
    metrics = compute(point.resolved, measured)
    expected = point.resolved.scenario.expect
    missed = shortcomings(measured.outcome, metrics["findings"], expected)
    _report_failures(measured, missed)
    missed += failures(metrics, expected)
    folder.write_json("metrics.json", {"ok": not missed, "reason": "; ".join(missed), **metrics})


def _report_failures(measured: Measurements, missed: Sequence[str]) -> None:
    """What a person wants to see of a job's failure that nobody expected."""
    for result in measured.outcome.jobs:
        if result.failure and result.failure.reason in missed:
            print(plain(result.failure.reason), file=sys.stderr)
            if result.failure.report:
                print(plain(result.failure.report), file=sys.stderr)


def _conclude(suite: Suite, folder: RunFolder, code: int, out: TextIO) -> None:
    """What is left to say and to draw when the network is gone, however it went."""
    try:
        _complete(suite, folder, code)
    except OSError as error:
        if not is_full(error):
            raise
        print(cannot_write(error, folder.path), file=sys.stderr)
    metrics = _metrics(folder)
    summary = sweep_summary if "points" in metrics else run_summary
    print(plain(summary(suite.name, metrics, folder.path)), file=out, flush=True)


def _complete(suite: Suite, folder: RunFolder, code: int) -> None:
    if suite.axes:
        folder.write_json("metrics.json", _sweep_metrics(suite, folder))
    elif code > LACKING:
        folder.fail("interrupted" if code == INTERRUPTED else f"killed by signal {code - 128}")
    _add_hashes(suite, folder)
    report.write(folder.path)


def _add_hashes(suite: Suite, folder: RunFolder) -> None:
    """events_sha256 of runs on virtual time, whose events are the same each time."""
    if any(not point.resolved.virtual for point in suite.points):
        return
    count = len(suite.points) if suite.axes else 0
    folders = [folder.path / f"point-{n}" for n in range(count)] or [folder.path]
    logs = [path / "events.jsonl" for path in folders]
    hashes = [hashlib.sha256(log.read_bytes()).hexdigest() for log in logs if log.is_file()]
    manifest = json.loads((folder.path / "manifest.json").read_text())
    value = hashes if suite.axes else "".join(hashes)
    folder.write_json("manifest.json", {**manifest, "events_sha256": value})


def _sweep_metrics(suite: Suite, folder: RunFolder) -> dict[str, Any]:
    """The points side by side, and how numbers grew from the first to the last."""
    points = []
    for number, point in enumerate(suite.points):
        path = folder.path / f"point-{number}" / "metrics.json"
        metrics = json.loads(path.read_text()) if path.is_file() else NOT_FINISHED
        points.append({"settings": dict(point.settings), "metrics": metrics})
    growth = {e.metric: _growth(points, e.metric.removeprefix(GROWTH)) for e in suite.growth}
    missed = [
        f"{point.label}: {entry['metrics']['reason']}"
        for point, entry in zip(suite.points, points, strict=True)
        if not entry["metrics"]["ok"]
    ]
    flat = {"growth": {name.removeprefix(GROWTH): value for name, value in growth.items()}}
    missed += [
        f"expected {e}, got {show(growth[e.metric])}"
        for e in suite.growth
        if not e.holds(growth[e.metric])
    ]
    return {
        "ok": not missed,
        "reason": "; ".join(missed),
        "exact": all(entry["metrics"].get("exact", False) for entry in points),
        **flat,
        "points": points,
    }


def _growth(points: Sequence[dict[str, Any]], path: str) -> float | None:
    first, last = (lookup(points[i]["metrics"], path) for i in (0, -1))
    return last / first if first and last is not None else None


def _metrics(folder: RunFolder) -> dict[str, Any]:
    metrics = json.loads((folder.path / "metrics.json").read_text())
    assert isinstance(metrics, dict)
    return metrics


def _verdict(folder: RunFolder) -> int:
    return PASSED if _metrics(folder)["ok"] else FAILED
