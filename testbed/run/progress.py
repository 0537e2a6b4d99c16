"""Shows the progress of a run: a line for each worker, redrawn in place on a terminal."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from agglab.testbed.base.worker_id import Event

REDRAW_S = 0.2
PLAIN_S = 5.0  # and doubled each time: a log of a long run stays readable
PLAIN_MAX_S = 60.0
PLAIN_LINES_MAX = 17
BAR_CELLS, SHORT_BAR_CELLS = 20, 8


@dataclass
class WorkerState:
    """The state of one worker in the current round."""

    rank: int
    of: int
    chunks: int = 0
    retransmitted: int = 0
    elapsed_s: float = 0.0
    done: bool = False

    @property
    def rate(self) -> float:
        """The chunks per second since the round began."""
        return self.chunks / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """The seconds to the end of the round at this rate; None if there is no progress."""
        return (self.of - self.chunks) / self.rate if self.rate > 0 else None


@dataclass
class JobState:
    """One job's current round, counted from 0. frame_bits: the size of a chunk on the wire."""

    name: str
    rounds: int
    frame_bits: int
    workers: list[WorkerState]
    round: int = 0
    began_ns: int = 0
    active: bool = False


class Progress:
    """Draws the progress of a run's jobs to `stream`. Each job is added before its first round.
    whose: the prefix of all lines."""

    def __init__(
        self, stream: TextIO, clock: Callable[[], float] = time.monotonic, whose: str = ""
    ) -> None:
        self._whose = whose
        self._clock = clock
        self._stream = stream
        self._live = stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
        self._jobs: dict[int, JobState] = {}
        self._drawn = 0
        self._last_s = 0.0
        self._pace_s = REDRAW_S

    def add_job(
        self, number: int, name: str, workers: int, rounds: int, chunks: int, frame_bits: int
    ) -> None:
        """Adds a job. number: its number on the wire. chunks: the number of chunks in a round.
        frame_bits: the size of a chunk on the wire, in bits."""
        states = [WorkerState(rank, chunks) for rank in range(workers)]
        self._jobs[number] = JobState(name, rounds, frame_bits, states)

    def begin_round(self, job: int, number: int, now_ns: int) -> None:
        state = self._jobs[job]
        state.round, state.began_ns, state.active = number, now_ns, True
        state.workers = [WorkerState(worker.rank, worker.of) for worker in state.workers]
        self._last_s = self._clock()
        self._pace_s = REDRAW_S if self._live else PLAIN_S

    def event(self, event: Event) -> None:
        """Handles an agent's `progress` or `round` event."""
        job = self._jobs[event["job"]]
        state = job.workers[event["rank"]]
        if event["event"] == "progress":
            state.chunks, state.of = event["chunks"], max(1, event["of"])
            state.retransmitted = event["retransmitted"]
            state.elapsed_s = max(0.0, (event["t_ns"] - job.began_ns) / 1e9)
        elif event["event"] == "round":
            state.done = True
            state.chunks = state.of
            state.retransmitted = event["stats"]["retransmitted"]
            state.elapsed_s = max(1e-9, (event["end_ns"] - event["start_ns"]) / 1e9)

    def trained(self, event: Event) -> None:
        """Prints a line for an epoch of training, as its script reported it."""
        job = self._jobs[event["job"]]
        since_s = (event["t_ns"] - job.began_ns) / 1e9
        told = [f"epoch {event['epoch']:g}"]
        told += [f"{name} {event[name]:.4g}" for name in ("loss", "accuracy") if name in event]
        self.say(f"{self._prefix(job)}{', '.join(told)} after {since_s:.1f} s")

    def due(self, now_s: float | None = None) -> bool:
        """Returns whether it is time to draw."""
        now_s = self._clock() if now_s is None else now_s
        return now_s - self._last_s >= self._pace_s

    def draw(self, now_s: float | None = None) -> None:
        """Redraws the lines if it is time to. On a stream that is not a terminal, prints plain
        lines."""
        now_s = self._clock() if now_s is None else now_s
        if not self.due(now_s):
            return
        self._last_s = now_s
        if not self._live:
            self._pace_s = min(2 * self._pace_s, PLAIN_MAX_S)
        if self._live:
            self._redraw()
        else:
            self._print(_shortened(self._lines(None), PLAIN_LINES_MAX))

    def end_round(self, job: int, seconds: float) -> None:
        """Replaces the workers' lines by one line about the round."""
        self._clear()
        state = self._jobs[job]
        state.active = False
        again = sum(worker.retransmitted for worker in state.workers)
        self._print(
            [
                f"{self._prefix(state)}round {state.round} of {state.rounds}: "
                f"{seconds:.4f} s, {again} sent again"
            ]
        )

    def say(self, text: str) -> None:
        """Prints a separate line."""
        self._clear()
        self._print([text])

    def close(self) -> None:
        """Leaves the terminal in a clean state, however the run ended."""
        self._clear()
        self._stream.flush()

    def _prefix(self, job: JobState) -> str:
        names = [self._whose] if self._whose else []
        names += [job.name] if len(self._jobs) > 1 else []
        return "".join(f"{name} " for name in names)

    def _lines(self, columns: int | None) -> list[str]:
        active = [job for job in self._jobs.values() if job.active]
        return [self._line(job, state, columns) for job in active for state in job.workers]

    def _line(self, job: JobState, state: WorkerState, columns: int | None) -> str:
        """Returns as much about a worker as fits into the line. The least important parts are left
        out first, and the remaining time is always shown."""
        who = f"{self._prefix(job)}round {job.round} of {job.rounds} worker {state.rank}:"
        chunks = f"{state.chunks}/{state.of} chunks"
        rate, again = _rate(state.rate * job.frame_bits), f"{state.retransmitted} sent again"
        left = "done" if state.done else _left(state.left_s)
        forms = (
            f"{who} {_bar(state, BAR_CELLS)} {chunks}  {rate}  {again}  {left}",
            f"{who} {_bar(state, SHORT_BAR_CELLS)} {chunks}  {again}  {left}",
            f"{who} {chunks}  {again}  {left}",
            f"{who} {chunks}  {left}",
            f"{self._prefix(job)}{state.rank}: {state.chunks}/{state.of}  {left}",
        )
        fitting = (form for form in forms if columns is None or len(form) <= columns)
        return next(fitting, forms[-1][:columns])

    def _redraw(self) -> None:
        """Redraws all lines in one write. It moves the cursor up to the first line, then erases and
        rewrites each line."""
        size = shutil.get_terminal_size()
        lines = self._lines(size.columns - 1)
        room = max(1, size.lines - 2)
        lines = _shortened(lines, room)
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        text = "".join(f"\x1b[2K{line[: size.columns - 1]}\n" for line in lines)
        self._drawn = len(lines)
        self._stream.write(up + text)
        self._stream.flush()

    def _clear(self) -> None:
        if self._drawn:
            self._stream.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _print(self, lines: list[str]) -> None:
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()


def _shortened(lines: list[str], room: int) -> list[str]:
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"... and {len(lines) - room + 1} more workers"]


def _bar(state: WorkerState, cells: int) -> str:
    full = round(cells * state.chunks / state.of)
    return f"[{'#' * full}{'.' * (cells - full)}]"


def _rate(bits_per_s: float) -> str:
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_s >= factor:
            return f"{bits_per_s / factor:.1f} {unit}"
    return f"{bits_per_s:.0f} bit/s"


def _left(seconds: float | None) -> str:
    return "waiting" if seconds is None else f"{seconds:.1f} s left"
