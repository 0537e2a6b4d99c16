"""One worker of a run: `python -m hosts.agent CONFIG.json`, in a host's namespace.

Speaks JSON lines over the Unix socket that the configuration names (docs/architecture.md). Exit
codes: 0 told to stop, or the control socket was closed; 1 a round failed (a `failed` event says
why); 2 the configuration is unusable.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hosts import quantise
from hosts.all_reduce import AllReducer
from hosts.driver import Address, default_window
from hosts.errors import AllReduceError
from hosts.library import BuildError
from hosts.tensors import make_tensor

INTEGERS = ("job", "rank", "workers", "lanes", "slots", "first_tag", "elements", "seed")


class ConfigError(ValueError):
    """The configuration cannot be used; the message names the key."""


class Stopped(Exception):
    """The testbed wants no more: it said so, or closed the control socket."""


@dataclass(frozen=True)
class Config:
    """The configuration file's keys. `window` may be null: then it follows from `link_rate_bps`."""

    name: str
    job: int
    rank: int
    workers: int
    lanes: int
    slots: int
    window: int | None
    first_tag: int
    bind: Address
    aggregator: Address
    link_rate_bps: float | None
    elements: int
    dtype: str
    seed: int
    give_up_s: float
    control: str
    sums_dir: str | None

    @classmethod
    def read(cls, path: Path) -> Config:
        """Raises ConfigError."""
        try:
            given = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: {error}") from error
        if not isinstance(given, dict):
            raise ConfigError(f"{path}: not an object")
        wrong = {field.name for field in fields(cls)} ^ given.keys()
        if wrong:
            raise ConfigError(f"{path}: missing or unknown keys: {', '.join(sorted(wrong))}")
        for key in INTEGERS:
            if type(given[key]) is not int:
                raise ConfigError(f"{path}: {key}: {given[key]!r} is not an integer")
        for key in ("bind", "aggregator"):
            given[key] = _address(path, key, given[key])
        if given["dtype"] not in ("int32", "float32"):
            raise ConfigError(f"{path}: dtype: {given['dtype']!r} is neither int32 nor float32")
        if given["elements"] < 0:
            raise ConfigError(f"{path}: elements: {given['elements']} is below 0")
        return cls(**given)


def _address(path: Path, key: str, value: Any) -> Address:
    try:
        host, port = value
        return str(host), int(port)
    except (TypeError, ValueError):
        raise ConfigError(f"{path}: {key}: {value!r} is not [address, port]") from None


class Control:
    """The JSON lines to and from the testbed."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._received = b""

    def send(self, event: str, **content: Any) -> None:
        """One event. Raises Stopped if the testbed has gone."""
        try:
            self._socket.sendall(json.dumps({"event": event, **content}).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            raise Stopped from None

    def next_round(self) -> int:
        """Wait for a `round` command and give its number. Raises Stopped."""
        while b"\n" not in self._received:
            self._receive()
        line, _, self._received = self._received.partition(b"\n")
        command = json.loads(line)
        if command.get("command") == "round":
            return int(command["round"])
        if command.get("command") == "stop":
            raise Stopped
        raise AllReduceError(f"unknown command from the testbed: {line.decode()}")

    def check(self) -> None:
        """Raise Stopped if, during a round, the testbed said stop or has gone."""
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self._receive()
        self._socket.setblocking(True)
        if b'"stop"' in self._received:
            raise Stopped

    def _receive(self) -> None:
        try:
            data = self._socket.recv(65536)
        except ConnectionResetError:
            raise Stopped from None
        if not data:
            raise Stopped
        self._received += data


class Agent:
    """Makes tensors, reduces them when told, reports."""

    def __init__(self, config: Config, control: Control) -> None:
        self._config, self._control = config, control
        window = config.window or default_window(config.slots, config.lanes, config.link_rate_bps)
        self._reducer = AllReducer(
            config.job,
            config.rank,
            config.workers,
            config.lanes,
            config.slots,
            config.bind,
            config.aggregator,
            window,
            config.first_tag,
            config.give_up_s,
            on_progress=self._progress,
        )
        # Filled, so that no page is first touched within a round.
        self._out: NDArray = np.full(config.elements, 1, config.dtype)
        self._sums = np.full(config.elements, 1, np.int32) if self._is_float else None
        self._round = 0
        self._values = self._tensor(0)

    @property
    def round(self) -> int:
        """The round under way, or the next."""
        return self._round

    @property
    def _is_float(self) -> bool:
        return self._config.dtype == "float32"

    def run(self) -> None:
        """Serve until Stopped, or until a round fails with AllReduceError."""
        self._control.send("ready", rank=self._config.rank)
        while True:
            number = self._control.next_round()
            if number != self._round:
                self._round, self._values = number, self._tensor(number)
            report = self._reduce()
            # Before the report, so that the next command finds every agent prepared.
            self._save_sums()
            report["error"] = self._error() if self._is_float else None
            self._round, self._values = number + 1, self._tensor(number + 1)
            self._control.send("round", **report)

    def _reduce(self) -> dict[str, Any]:
        self._before = self._reducer.stats
        cpu_s, start_ns = time.process_time(), time.monotonic_ns()
        self._reducer.all_reduce(self._values, out=self._out, sums=self._sums)
        end_ns, cpu_s = time.monotonic_ns(), time.process_time() - cpu_s
        return {
            "rank": self._config.rank,
            "round": self._round,
            "start_ns": start_ns,
            "end_ns": end_ns,
            "cpu_s": cpu_s,
            "stats": self._since_start(),
        }

    def _since_start(self) -> dict[str, int]:
        return {name: count - self._before[name] for name, count in self._reducer.stats.items()}

    def _progress(self, now_ns: int) -> None:
        self._control.check()
        self._control.send(
            "progress",
            rank=self._config.rank,
            round=self._round,
            chunks=self._reducer.worker.chunks_done,
            of=self._reducer.worker.chunks,
            retransmitted=self._since_start()["retransmitted"],
            t_ns=now_ns,
        )

    def _tensor(self, number: int) -> NDArray:
        config = self._config
        return make_tensor(
            config.seed, config.job, config.rank, number, config.elements, config.dtype
        )

    def _save_sums(self) -> None:
        config = self._config
        if config.sums_dir is None:
            return
        name = f"job{config.job}-rank{config.rank}-round{self._round}.npy"
        np.save(Path(config.sums_dir) / name, self._out if self._sums is None else self._sums)

    def _error(self) -> dict[str, float]:
        """How far the floats are from a float64 sum of all inputs, over this rank's share of the
        chunks: the largest difference, the largest bound, and the largest ratio of the two in one
        chunk."""
        config, lanes = self._config, self._config.lanes
        exponents = self._reducer.worker.exponents
        first, last = (
            exponents.size * rank // config.workers for rank in (config.rank, config.rank + 1)
        )
        start, stop = first * lanes, min(last * lanes, config.elements)
        if start >= stop:
            return {"max_abs": 0.0, "bound": 0.0, "ratio": 0.0}
        exact = np.zeros(stop - start)
        for rank in range(config.workers):
            exact += make_tensor(
                config.seed, config.job, rank, self._round, stop - start, config.dtype, start
            )
        worst = np.maximum.reduceat(
            np.abs(self._out[start:stop] - exact), np.arange(0, stop - start, lanes)
        )
        bound = quantise.error_bound(exponents[first:last], config.workers)
        ratio = float((worst / bound).max())
        return {"max_abs": float(worst.max()), "bound": float(bound.max()), "ratio": ratio}


def _serve(config: Config, control: Control) -> int:
    agent = None
    try:
        agent = Agent(config, control)
        agent.run()
    except Stopped:
        return 0
    except (AllReduceError, BuildError, ValueError, OSError, MemoryError) as error:
        message = str(error).strip() or type(error).__name__
        number = agent.round if agent else 0
        control.send("failed", rank=config.rank, round=number, error=" ".join(message.split()))
        return 1
    return 0


def main(arguments: list[str]) -> int:
    """Run the agent; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m hosts.agent CONFIG.json", file=sys.stderr)
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
