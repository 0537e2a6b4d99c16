"""The program of one agent in a run: `python -m agglab.hosts.agent CONFIG.json`. The testbed starts
it in the network namespace of a host.

The agent exchanges JSON lines with the testbed over the Unix socket that the configuration names
(docs/architecture.md). It ends when the testbed tells it to stop or closes the control socket. Exit
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

from agglab.hosts.agent_config import Config, ConfigError
from agglab.hosts.agent_core import AgentCore, one_line
from agglab.hosts.all_reduce import Reducer
from agglab.hosts.bfloat16 import BFLOAT16
from agglab.hosts.control import Control, Stopped
from agglab.hosts.endpoint import NEVER_NS
from agglab.hosts.errors import AllReduceError
from agglab.hosts.iteration import reducer_of
from agglab.hosts.part import Hooks, Part
from agglab.hosts.recording import Recorder
from agglab.hosts.script_round import ScriptRound
from agglab.hosts.workloads import Torch
from p4native.common.c_build import BuildError

NUMBERS = "biufc"
"""The kinds of NumPy's dtypes that are numbers."""


class Aborted(Exception):
    """Raised to leave the current round when the testbed has aborted it. The testbed's command has
    already been answered then."""


class Agent:
    """The Driver of an AgentCore (agent_core.py) that uses the real clock. It makes the input of
    each round and reduces it over a socket."""

    _reducer: Reducer
    """The session's reducer; `open` makes it."""

    def __init__(self, config: Config, control: Control) -> None:
        self._config, self._control = config, control
        self.core = AgentCore(config, self, control.send, time.monotonic_ns)
        self._recorder = _recorder(config)
        self._script: ScriptRound | None = None
        self._prepare(0)

    def _prepare(self, number: int) -> None:
        """Makes the input of round `number` and allocates the memory for its result. Every page of
        this memory has been written to."""
        self._next, self._values = number, self._config.inputs(number)
        if number == 0 or not self._config.work.in_place:
            self._out = self._config.work.room(self._values)
            self._sums = np.full(self._out.size, 1, np.int32) if self.core.sums_integers else None

    def run(self) -> None:
        """Carries out the testbed's commands until Stopped is raised."""
        self.core.start()
        while True:
            if not self._control.waits and not self.core.broken_off:
                self._reducer.serve(self._control.fileno())
            self.core.execute(self._control.wait())

    # What the core asks for.

    def open(self, system: ModuleType, part: Part) -> Reducer:
        """Returns the object that performs the rounds of a session. This is the system's own
        reducer, which may use the user's worker class, or else a Reducer around the system's
        endpoint."""
        hooks = Hooks(self._progress, self._after_batch, self._after_look)
        self._reducer = reducer_of(system, part, hooks)
        return self._reducer

    def begin_round(self, number: int) -> None:
        """Runs round `number` to its end, and reports the outcome to the testbed."""
        if number != self._next:
            self._prepare(number)
        self._record(at_once=True)
        cpu_s, start_ns = time.process_time(), time.monotonic_ns()
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
        """Performs an all-reduce and returns, by name, the arrays that its caller then has. With a
        user's own worker class, `result` is what its `all_reduce` returned, which may be
        anything."""
        if not self._config.work.in_place:
            self._reducer.run(self._values, self._out, self._sums)
            return {"result": self._out, "sums": self._sums, **self.core.presence}
        returned = self._reducer.all_reduce(self._values, out=self._out, sums=self._sums)
        own = {} if returned is self._out else {"out": self._out}
        return {"result": returned, "sums": self._sums, **own, **self.core.presence}

    @property
    def _is_training(self) -> bool:
        """Whether each round is one run of a training script."""
        return isinstance(self._config.work, Torch)

    def _train(self, number: int) -> Mapping[str, Any]:
        """Performs a round that is one run of a training script. Returns the arrays for the
        testbed, by name; see ScriptRound.run."""
        config = self._config
        self._script = ScriptRound(
            self.core.part,
            config.scratch,
            f"{config.seed}/job{config.job}/round{number}",
            self._reducer,
            self._control.fileno(),
            self._execute,
            self._report,
            self.core.sums_integers,
            lambda: self.core.present,
        )
        try:
            return self._script.run()
        finally:
            self._script = None

    def _execute(self) -> None:
        for command in self._control.arrived():
            self.core.execute(command)

    def _report(self, report: Mapping[str, Any]) -> None:
        """Sends an event with a script's report if the report is about an epoch and this agent has
        rank 0."""
        if "epoch" in report and self.core.part.rank == 0:
            self.core.tell("trained", round=self.core.round, **report)

    def leave_round(self) -> None:
        """Leaves the current round by raising Aborted through the `all_reduce` that called
        `_progress`."""
        raise Aborted

    def stop(self) -> None:
        """Ends the agent by raising Stopped."""
        raise Stopped

    # What happens within a round.

    def _progress(self, now_ns: int) -> None:
        self._execute()
        self._control.send(self.core.progress())
        self._keep_records()

    def _record(self, at_once: bool = False) -> None:
        """Records a sample of the agent's state, if one is due or `at_once` is true. Samples that
        are taken between rounds stay in memory until the next samples are written."""
        recorder = self._recorder
        if recorder is None or not (at_once or time.monotonic_ns() >= recorder.due_ns):
            return
        recorder.add(self.core.sample())
        if recorder.is_full:
            self._keep_records()

    def _keep_records(self) -> None:
        if self._recorder is not None:
            self._recorder.flush(self.core.latencies)

    def _after_look(self) -> None:
        self._record()
        self.core.after_answers()

    def _after_batch(self) -> int | None:
        self._record()
        if self._script is not None:
            self._script.check()
        if self.core.marks:
            self.core.after_batch()
        if self.core.slow_s:
            time.sleep(self.core.slow_s)
        if self._script is not None or self.core.marks or self.core.slow_s:
            return None
        return NEVER_NS if self._recorder is None else self._recorder.due_ns

    def _save(self, number: int, received: Mapping[str, Any]) -> None:
        """Writes the arrays of round `number` to files that the testbed reads. Values that are not
        arrays of numbers are not written, and the testbed reports them as missing."""
        config = self._config
        if config.sums_dir is None:
            return
        _put(received, Path(config.sums_dir) / f"job{config.job}-rank{config.rank}-round{number}")


def _recorder(config: Config) -> Recorder | None:
    """Returns the recorder of this agent's samples, or None if the configuration asks for no
    samples."""
    if not config.sample_ns or config.sums_dir is None:
        return None
    name = f"job{config.job}-rank{config.rank}-{time.monotonic_ns()}"
    return Recorder(Path(config.sums_dir), name, config.sample_ns)


def _put(received: Mapping[str, Any], folder: Path) -> None:
    """Writes a folder with one file for each array. The folder appears with all its files or not at
    all, even if the program is killed while it writes."""
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
    return array.dtype.kind in NUMBERS or array.dtype == BFLOAT16


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
