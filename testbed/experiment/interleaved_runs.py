"""Runs several runs in turns, each on its own network: the contenders of a comparison, round by
round, or a single run that has all turns."""

from __future__ import annotations

import contextlib
import inspect
import shlex
import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from agglab.hosts.own_worker import WorkerError
from agglab.testbed.base.errors import AgentFailed, MachineLacks, NodeFailed
from agglab.testbed.base.exit_codes import FAILED, INTERRUPTED, LACKING, PASSED
from agglab.testbed.base.terminal import cannot_write, is_full
from agglab.testbed.experiment.overall_verdict import conclude, shortfalls
from agglab.testbed.experiment.single_run import Experiment
from agglab.testbed.experiment.virtual_rerun import Opinion, second_opinion
from agglab.testbed.results.metrics import compute
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.run.programs.prepare import Prepared
from agglab.testbed.run.result_folder import RunFolder
from agglab.testbed.scenario import Point
from p4native.common.c_build import BuildError
from p4native.common.printable import one_line, plain
from p4native.switch import PipelineError

Turns = Generator[None, None, None]


class Run:
    """One run, from its start to the metrics.json in its folder."""

    def __init__(
        self, point: Point, prepared: Prepared, folder: RunFolder, scratch: Path, out: TextIO
    ) -> None:
        self.folder = folder
        self._point, self._prepared, self._scratch, self._out = point, prepared, scratch, out
        self._measured: Measurements | None = None
        self.killed = ""
        """Who was killed although no fault of the scenario says so; empty if nobody was."""

    def turns(self) -> Turns:
        """Yields the experiment's turns. The last one keeps what was measured for `judge`."""
        point = self._point
        experiment = Experiment(
            point.resolved, self._prepared, self.folder, self._scratch, self._out, point.contender
        )
        self._measured = yield from experiment.turns()

    def judge(self) -> None:
        """Writes metrics.json, unless the run was aborted. A second opinion needs processors, so
        this is called when no run of the group measures any more."""
        if self._measured is None:
            return
        expected = self._point.resolved.scenario.expect
        metrics = compute(self._point.resolved, self._measured)
        missed = shortfalls(self._measured.outcome, metrics, expected)
        self._report_failures(self._measured, missed)
        self.killed = _killed(self._measured)
        result = conclude(metrics, missed, expected, lambda: self._ask(metrics), self._command)
        self.folder.write_json("metrics.json", result)

    def _ask(self, metrics: Mapping[str, Any]) -> Opinion:
        """Returns what virtual time says about the scenario."""
        doubts = "; ".join(doubt["text"] for doubt in metrics["doubts"])
        whose = f"{self._point.contender}: " if self._point.contender else ""
        print(plain(f"{whose}{doubts}: judging that in virtual time"), file=self._out, flush=True)
        scratch = self._scratch.with_name(f"{self._scratch.name}-virtual")
        return second_opinion(self._point, self._prepared, metrics["totals"]["sent"], scratch)

    @property
    def _command(self) -> str:
        path = shlex.quote(str(self.folder.path / "scenario.yaml"))
        return f"agglab run {path} --set backend=virtual"

    def broke_off(self, error: Exception) -> int:
        """Reports on the terminal and in the result folder why the run was aborted. Returns the
        exit code."""
        if isinstance(error, (NodeFailed, AgentFailed, MachineLacks, WorkerError)):
            self.folder.fail(str(error))
            self.killed = str(error) if isinstance(error, NodeFailed) and error.killed else ""
            self._say(error.report() if isinstance(error, NodeFailed) else str(error))
            return LACKING if isinstance(error, MachineLacks) else FAILED
        self._say(self._broken(error))
        return FAILED

    def _broken(self, error: Exception) -> str:
        """Returns the line about this error, after writing it into the result folder. For an
        internal error, writes the traceback to a file."""
        line = cannot_write(error, self.folder.path) if is_full(error) else _of_users_code(error)
        if line:
            self.folder.fail(line)
            return line
        log = self.folder.logs / "testbed.log"
        log.write_text("".join(traceback.format_exception(error)))
        what = f"internal error: {one_line(repr(error), 200)}"
        self.folder.fail(what)
        return f"{what}; the traceback is in {log}"

    def _report_failures(self, measured: Measurements, missed: Sequence[str]) -> None:
        """Prints the details of jobs' failures that the scenario does not expect."""
        for result in measured.outcome.jobs:
            if result.failure and result.failure.reason in missed:
                self._say(result.failure.reason)
                if result.failure.report:
                    self._say(result.failure.report)

    def _say(self, text: str) -> None:
        whose = f"{self._point.contender}: " if self._point.contender else ""
        print(plain(whose + text), file=sys.stderr)


def _of_users_code(error: Exception) -> str:
    """Returns the line about code that cannot run and may be the user's own; empty for others."""
    if isinstance(error, PipelineError):
        return f"a switch cannot run its program: {one_line(str(error), 400)}"
    if isinstance(error, BuildError):
        return f"C code cannot be built: {one_line(str(error), 400)}"
    return ""


def _killed(measured: Measurements) -> str:
    """Returns the reason of the first failure for which somebody outside the run is to blame."""
    failures = (result.failure for result in measured.outcome.jobs)
    return next((failure.reason for failure in failures if failure and failure.killed), "")


def take_turns(runs: Sequence[Run]) -> int:
    """Starts all runs. Then lets each run take a turn, repeatedly, until all runs are done, and
    judges them. A run that is aborted does not stop the others, but a run that cannot start does.
    Returns PASSED, or the exit code of the first run that was aborted."""
    code = PASSED
    with contextlib.ExitStack() as stack:
        turns = [(run, run.turns()) for run in runs]
        for run, own in turns:
            stack.callback(_close, run, own)
        try:
            for run, own in turns:
                if code := _turn(run, own):
                    for other in runs:
                        other.folder.fail("aborted, because another contender could not start")
                    return code
            while turns := [(run, own) for run, own in turns if not _is_over(own)]:
                for run, own in turns:
                    broke_off = _turn(run, own)
                    code = code or broke_off
            for run in runs:
                broke_off = _guarded(run, run.judge)
                code = code or broke_off
        except KeyboardInterrupt:
            for run in runs:
                run.folder.fail("interrupted")
            return INTERRUPTED
    return code


def _turn(run: Run, turns: Turns) -> int:
    """Lets a run take one turn. Returns PASSED if the run can continue or is complete, and its exit
    code if it was aborted in this turn."""
    return _guarded(run, lambda: next(turns, None))


def _guarded(run: Run, action: Callable[[], object]) -> int:
    """Calls `action`, a part of a run. Returns PASSED, or the run's exit code if it raised."""
    try:
        action()
    except Exception as error:
        return run.broke_off(error)
    return PASSED


def _is_over(turns: Turns) -> bool:
    return inspect.getgeneratorstate(turns) == inspect.GEN_CLOSED


def _close(run: Run, turns: Turns) -> None:
    """Removes everything that an incomplete run has built. Does nothing if the run is complete."""
    try:
        turns.close()
    except Exception as error:
        run.broke_off(error)
