"""One worker of a run: `python -m agglab.hosts.agent CONFIG.json`, in a host's namespace.

Speaks JSON lines over the Unix socket that the configuration names (docs/architecture.md). Exit
codes, once told to stop or the control socket was closed: 0; 1 a round had failed, or nothing could
start (a `failed` event says why). 2 the configuration is unusable.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.all_reduce import Reducer
from agglab.hosts.control import Aborted, Command, Control, Stopped
from agglab.hosts.endpoint import Address
from agglab.hosts.errors import AllReduceError, RoundTimeout
from agglab.hosts.library import BuildError
from agglab.hosts.own_worker import load_module
from agglab.hosts.part import SERVER, WORKER, Hooks, Part
from agglab.hosts.tensors import Sparsity, make_tensor

WAITING_MAX = 64
NUMBERS = "biufc"
"""Kinds of NumPy's dtypes."""
INTEGERS = ("job", "rank", "workers", "elements", "seed")
ROLES = (WORKER, SERVER)


class ConfigError(ValueError):
    """The configuration cannot be used; the message names the key."""


@dataclass(frozen=True)
class Config:
    """The configuration file's keys. system: the module of its endpoints (systems/__init__.py);
    settings: what that asks for; role: `worker` or `server`. `worker` may be absent; see
    own_worker.py. `sparsity`, which may be too, has the `density`, `block` and `overlap` of
    tensors.Sparsity."""

    name: str
    system: str
    role: str
    job: int
    rank: int
    workers: int
    bind: Address
    link_rate_bps: float | None
    elements: int
    dtype: str
    seed: int
    give_up_s: float
    settings: Mapping[str, Any]
    control: str
    sums_dir: str | None
    worker: str = ""
    sparsity: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, path: Path) -> Config:
        """Raises ConfigError."""
        try:
            given = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: {error}") from error
        if not isinstance(given, dict):
            raise ConfigError(f"{path}: not an object")
        wrong = {field.name for field in fields(cls)} ^ {"worker", "sparsity", *given}
        if wrong:
            raise ConfigError(f"{path}: missing or unknown keys: {', '.join(sorted(wrong))}")
        for key in INTEGERS:
            if type(given[key]) is not int:
                raise ConfigError(f"{path}: {key}: {given[key]!r} is not an integer")
        given["bind"] = _address(path, "bind", given["bind"])
        if given["role"] not in ROLES:
            raise ConfigError(f"{path}: role: {given['role']!r} is neither worker nor server")
        if given["dtype"] not in ("int32", "float32"):
            raise ConfigError(f"{path}: dtype: {given['dtype']!r} is neither int32 nor float32")
        if given["elements"] < 0:
            raise ConfigError(f"{path}: elements: {given['elements']} is below 0")
        if not isinstance(given["settings"], dict):
            raise ConfigError(f"{path}: settings: not an object")
        return cls(**given)

    def tensor(self, number: int) -> NDArray:
        """The input of a round."""
        sparsity = None
        if self.sparsity is not None:
            sparsity = Sparsity(**self.sparsity, workers=self.workers, elements=self.elements)
        key = (self.seed, self.job, self.rank, number)
        return make_tensor(*key, self.elements, self.dtype, sparsity=sparsity)

    def part(self, members: Sequence[int], changed: Mapping[str, Any]) -> Part:
        """What the endpoint is made of, in a session of these members (workers' ranks in the job)
        whose settings have changed so."""
        if self.role == WORKER and self.rank not in members:
            raise ConfigError(f"rank is {self.rank}; it must be 0 to {len(members) - 1}")
        return Part(
            self.job,
            self.role,
            members.index(self.rank) if self.role == WORKER else self.rank,
            len(members),
            self.bind,
            self.link_rate_bps,
            self.elements,
            self.dtype,
            self.give_up_s,
            {**self.settings, **changed},
            self.worker,
        )


def _address(path: Path, key: str, value: Any) -> Address:
    try:
        host, port = value
        return str(host), int(port)
    except (TypeError, ValueError):
        raise ConfigError(f"{path}: {key}: {value!r} is not [address, port]") from None


class Agent:
    """Makes tensors, reduces them when told, reports. Ranks are those of the whole job: members
    that a `configure` leaves out change nobody's rank and nobody's tensor."""

    def __init__(self, config: Config, control: Control) -> None:
        self._config, self._control = config, control
        self._system = load_module(config.system)
        self._marks: list[int] = []
        self._slow_s = 0.0
        self._reducer: Reducer | None = None
        self._before: Mapping[str, int] = {}
        self._configure(list(range(config.workers)), {})
        # Filled, so that no page is first touched within a round.
        self._out: NDArray = np.full(config.elements, 1, config.dtype)
        self._sums = np.full(config.elements, 1, np.int32) if self._sums_integers else None
        self._received: dict[str, Any] = {}
        self._round = 0
        self._values = self._config.tensor(0)
        self.failed = False

    def _configure(self, members: Sequence[int], settings: Mapping[str, Any]) -> None:
        untold: Mapping[str, int] = {}
        if self._reducer is not None:
            untold = self._untold()
            self._reducer.close()
        part, hooks = self._config.part(members, settings), Hooks(self._progress, self._after_batch)
        made = getattr(self._system, "reducer", None)
        self._reducer = (
            made(part, hooks)
            if made
            else Reducer(self._system.endpoint(part), self._config.bind, hooks)
        )
        stats = self._reducer.stats
        self._before = {name: count - untold.get(name, 0) for name, count in stats.items()}
        self._broken_off = False

    @property
    def round(self) -> int:
        """The round under way, or the next."""
        return self._round

    @property
    def _sums_integers(self) -> bool:
        """Whether floats are summed as integers, which are judged too."""
        return self._config.dtype == "float32" and getattr(self._system, "QUANTISES", False)

    @property
    def _active(self) -> Reducer:
        assert self._reducer is not None
        return self._reducer

    def run(self) -> None:
        """Serve until Stopped."""
        self._control.send("ready", rank=self._config.rank)
        while True:
            if not self._control.waits and not self._broken_off:
                self._active.serve(self._control.fileno())
            command = self._control.wait()
            if command.get("command") == "round":
                self._run_round(command)
            else:
                self._obey(command)

    def _obey(self, command: Command) -> None:
        """Every command but `round` and `stop`."""
        kind = command.get("command")
        if kind == "abort":
            self._control.send("aborted", rank=self._config.rank, round=self._round, waiting=[])
        elif kind == "slow":
            self._slow_s = command["delay_s"]
        elif kind == "configure":
            self._configure(command["members"], command["settings"])
            self._control.send("ready", rank=self._config.rank)
        elif kind == "report":
            waiting = self._active.endpoint.waiting(WAITING_MAX)
            stats = self._told()
            self._control.send("served", rank=self._config.rank, stats=stats, waiting=waiting)
        else:
            raise AllReduceError(f"unknown command from the testbed: {json.dumps(command)}")

    def _run_round(self, command: Command) -> None:
        number = command["round"]
        if number != self._round:
            self._round, self._values = number, self._config.tensor(number)
        self._marks = sorted(command.get("marks", []))
        try:
            report = self._reduce()
        except Aborted:
            self._report_end("aborted")
            return
        except AllReduceError as error:
            self.failed = True
            missing = error.missing if isinstance(error, RoundTimeout) else None
            self._report_end("failed", error=_one_line(error), missing=missing)
            return
        # Before the report, so that the next command finds every agent prepared.
        self._save(self._received)
        self._round, self._values = number + 1, self._config.tensor(number + 1)
        self._control.send("round", **report)

    def _report_end(self, event: str, **content: Any) -> None:
        """Of a round without a result, for which nothing more is done. waiting: what it waits for,
        in the words of the system."""
        self._broken_off = True
        self._control.send(
            event,
            rank=self._config.rank,
            round=self._round,
            chunks=self._active.endpoint.chunks_done,
            waiting=self._active.endpoint.waiting(WAITING_MAX),
            stats=self._told(),
            t_ns=time.monotonic_ns(),
            **content,
        )

    def _after_batch(self) -> None:
        done = self._active.endpoint.chunks_done
        while self._marks and self._marks[0] <= done:
            chunk = self._marks.pop(0)
            now_ns = time.monotonic_ns()
            rank, number = self._config.rank, self._round
            self._control.send("chunk", rank=rank, round=number, chunk=chunk, t_ns=now_ns)
        if self._slow_s:
            time.sleep(self._slow_s)

    def _reduce(self) -> dict[str, Any]:
        cpu_s, start_ns = time.process_time(), time.monotonic_ns()
        returned = self._active.all_reduce(self._values, out=self._out, sums=self._sums)
        end_ns, cpu_s = time.monotonic_ns(), time.process_time() - cpu_s
        self._received = {"result": returned, "sums": self._sums}
        if returned is not self._out:
            self._received["out"] = self._out
        return {
            "rank": self._config.rank,
            "round": self._round,
            "start_ns": start_ns,
            "end_ns": end_ns,
            "cpu_s": cpu_s,
            "stats": self._told(),
        }

    def _untold(self) -> dict[str, int]:
        """What was counted since the last event that told."""
        return {name: count - self._before[name] for name, count in self._active.stats.items()}

    def _told(self) -> dict[str, int]:
        stats = self._untold()
        self._before = self._active.stats
        return stats

    def _progress(self, now_ns: int) -> None:
        for command in self._control.during_round():
            self._obey(command)
        self._control.send(
            "progress",
            rank=self._config.rank,
            round=self._round,
            chunks=self._active.endpoint.chunks_done,
            of=self._active.endpoint.chunks,
            retransmitted=self._untold()["retransmitted"],
            t_ns=now_ns,
        )

    def _save(self, received: Mapping[str, Any]) -> None:
        """Leave the arrays that a caller would have now to the testbed. A worker of one's own may
        return anything; what is no array of numbers is left out and found missing."""
        config = self._config
        if config.sums_dir is None:
            return
        folder = Path(config.sums_dir) / f"job{config.job}-rank{config.rank}-round{self._round}"
        part = folder.with_suffix(".part")
        for old in (part, folder):  # of an attempt that was broken off
            shutil.rmtree(old, ignore_errors=True)
        part.mkdir()
        for what, array in received.items():
            if _holds_numbers(array):
                np.save(part / f"{what}.npy", np.asarray(array))
        part.rename(folder)  # all of it or nothing, for whoever is killed meanwhile


def _holds_numbers(array: Any) -> bool:
    """In all of its places: not so a masked array."""
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        return False
    return array.dtype.kind in NUMBERS


def _serve(config: Config, control: Control) -> int:
    agent = None
    try:
        agent = Agent(config, control)
        agent.run()
    except Stopped:
        return 1 if agent is not None and agent.failed else 0
    except (AllReduceError, BuildError, ValueError, OSError, MemoryError) as error:
        number = agent.round if agent else 0
        control.send("failed", rank=config.rank, round=number, error=_one_line(error), missing=None)
    return 1


def _one_line(error: Exception) -> str:
    return " ".join((str(error).strip() or type(error).__name__).split())


def main(arguments: list[str]) -> int:
    """Run the agent; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m agglab.hosts.agent CONFIG.json", file=sys.stderr)
        return 2
    try:
        config = Config.read(Path(arguments[0]))
        identity = {"job": config.job, "name": config.name}
        if config.role != WORKER:
            identity["role"] = config.role
        control = Control(config.control, identity)
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
