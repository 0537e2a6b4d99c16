"""One agent of a run: `python -m agglab.hosts.agent CONFIG.json`, in a host's namespace.

It exchanges JSON lines with the testbed over the Unix socket that the configuration names
(docs/architecture.md). It ends when it is told to stop or when the control socket is closed. Exit
codes: 0, no round has failed. 1, a round has failed, or the agent could not start; a `failed` event
says why. 2, the configuration cannot be used.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from agglab.common.c_build import BuildError
from agglab.hosts.agent_config import Config, ConfigError
from agglab.hosts.agent_core import AgentCore, one_line
from agglab.hosts.all_reduce import Reducer
from agglab.hosts.control import Control, Stopped
from agglab.hosts.errors import AllReduceError
from agglab.hosts.iteration import reducer_of
from agglab.hosts.part import Hooks, Part
from agglab.hosts.recording import Recorder
from agglab.hosts.script_round import ScriptRound
from agglab.hosts.workloads import Torch

NUMBERS = "biufc"
"""The kinds of NumPy's dtypes that are numbers."""


class Aborted(Exception):
    """An exception: the testbed has aborted the round under way, and has got its answer."""


class Agent:
    """The driver of an AgentCore on the real clock. It makes tensors and reduces them over a
    socket."""

    _reducer: Reducer
    """The session's reducer; `open` makes it."""

    def __init__(self, config: Config, control: Control) -> None:
        self._config, self._control = config, control
        self.core = AgentCore(config, self, control.send, time.monotonic_ns)
        self._recorder = _recorder(config)
        self._script: ScriptRound | None = None
        self._prepare(0)

    def _prepare(self, number: int) -> None:
        """Makes the input of round `number` and the room for its result. Every page of this memory
        has been written to."""
        self._next, self._values = number, self._config.inputs(number)
        if number == 0 or not self._config.work.in_place:
            self._out = self._config.work.room(self._values)
            self._sums = np.full(self._out.size, 1, np.int32) if self.core.sums_integers else None

    def run(self) -> None:
        """Serves until Stopped is raised."""
        self.core.start()
        while True:
            if not self._control.waits and not self.core.broken_off:
                self._reducer.serve(self._control.fileno())
            self.core.execute(self._control.wait())

    # What the core asks for.

    def open(self, system: ModuleType, part: Part) -> Reducer:
        """Returns what performs the rounds of a session: the system's own reducer, which may use
        the user's class, or a Reducer around the system's endpoint."""
        hooks = Hooks(self._progress, self._after_batch, self._record if self._recorder else None)
        self._reducer = reducer_of(system, part, hooks)
        return self._reducer

    def begin_round(self, number: int) -> None:
        """Runs a whole round, and reports how it ended."""
        if number != self._next:
            self._prepare(number)
        cpu_s, start_ns = time.process_time(), time.monotonic_ns()
        self._record(at_once=True)
        try:
            received = self._train(number) if self._is_training else self._reduce()
        except Aborted:
            return
        except AllReduceError as error:
            self.core.fail(error)
            return
        end_ns, cpu_s = time.monotonic_ns(), time.process_time() - cpu_s
        self._record(at_once=True)
        self._keep_records()
        # Before the report, so that the next command finds every agent prepared.
        self._save(number, received)
        self._prepare(number + 1)
        self.core.finish(start_ns, end_ns, cpu_s)

    def _reduce(self) -> Mapping[str, Any]:
        """Returns the arrays that the caller of an all-reduce has afterwards, by name. With a
        user's own worker, `result` is what its `all_reduce` returned, which may be anything."""
        if not self._config.work.in_place:
            self._reducer.run(self._values, self._out, self._sums)
            return {"result": self._out, "sums": self._sums}
        returned = self._reducer.all_reduce(self._values, out=self._out, sums=self._sums)
        own = {} if returned is self._out else {"out": self._out}
        return {"result": returned, "sums": self._sums, **own}

    @property
    def _is_training(self) -> bool:
        """Whether a round is the run of a script."""
        return isinstance(self._config.work, Torch)

    def _train(self, number: int) -> Mapping[str, Any]:
        """See ScriptRound.run."""
        config = self._config
        self._script = ScriptRound(
            self.core.part,
            f"{config.seed}/job{config.job}/round{number}",
            self._reducer,
            self._control.fileno(),
            self._execute,
            self._report,
            self.core.sums_integers,
        )
        try:
            return self._script.run()
        finally:
            self._script = None

    def _execute(self) -> None:
        for command in self._control.arrived():
            self.core.execute(command)

    def _report(self, report: Mapping[str, Any]) -> None:
        """Sends an event for a report of an epoch, if it comes from the first rank."""
        if "epoch" in report and self.core.part.rank == 0:
            self.core.tell("trained", round=self.core.round, **report)

    def leave_round(self) -> None:
        """Leaves the running `all_reduce`, which called `_progress`, by an exception."""
        raise Aborted

    def stop(self) -> None:
        """Ends the agent by an exception."""
        raise Stopped

    # What happens within a round.

    def _progress(self, now_ns: int) -> None:
        self._execute()
        self._control.send(self.core.progress())
        self._keep_records()

    def _record(self, at_once: bool = False) -> None:
        """Takes a sample, if one is due or `at_once` is true. Samples between rounds are kept in
        memory until the next samples are written."""
        recorder = self._recorder
        if recorder is None or not (at_once or time.monotonic_ns() >= recorder.due_ns):
            return
        recorder.add(self.core.sample())
        if recorder.is_full:
            self._keep_records()

    def _keep_records(self) -> None:
        if self._recorder is not None:
            self._recorder.flush(self.core.latencies)

    def _after_batch(self) -> None:
        self._record()
        if self._script is not None:
            self._script.check()
        if self.core.marks:
            self.core.after_batch()
        if self.core.slow_s:
            time.sleep(self.core.slow_s)

    def _save(self, number: int, received: Mapping[str, Any]) -> None:
        """Writes arrays for the testbed. What is not an array of numbers is not written; the
        testbed then reports it as missing."""
        config = self._config
        if config.sums_dir is None:
            return
        _put(received, Path(config.sums_dir) / f"job{config.job}-rank{config.rank}-round{number}")


def _recorder(config: Config) -> Recorder | None:
    """Returns the recorder, or None if no samples are wanted."""
    if not config.sample_ns or config.sums_dir is None:
        return None
    name = f"job{config.job}-rank{config.rank}-{time.monotonic_ns()}"
    return Recorder(Path(config.sums_dir), name, config.sample_ns)


def _put(received: Mapping[str, Any], folder: Path) -> None:
    """Writes a folder of files completely or not at all, even if the program is killed
    meanwhile."""
    part = folder.with_suffix(".part")
    for old in (part, folder):  # of an attempt that was broken off
        shutil.rmtree(old, ignore_errors=True)
    part.mkdir()
    for what, array in received.items():
        if _holds_numbers(array):
            np.save(part / f"{what}.npy", np.asarray(array))
    part.rename(folder)


def _holds_numbers(array: Any) -> bool:
    """Returns whether the value is an array that holds a number at each position. A masked array
    does not."""
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        return False
    return array.dtype.kind in NUMBERS


def _serve(config: Config, control: Control) -> int:
    agent = None
    try:
        agent = Agent(config, control)
        agent.run()
    except Stopped:
        return 1 if agent is not None and agent.core.failed else 0
    except (AllReduceError, BuildError, ValueError, OSError, MemoryError) as error:
        number = agent.core.round if agent else None
        told = {"round": number, "error": one_line(error), "missing": None}
        control.send({"event": "failed", **config.identity, **told})
    return 1


def main(arguments: list[str]) -> int:
    """Runs the agent and returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m agglab.hosts.agent CONFIG.json", file=sys.stderr)
        return 2
    try:
        config = Config.read(Path(arguments[0]))
        control = Control(config.control)
    except ConfigError as error:
        print(f"hosts.agent: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"hosts.agent: {config.control}: {os.strerror(error.errno or 0)}", file=sys.stderr)
        return 2
    try:
        return _serve(config, control)
    except Stopped:
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
