"""Reads the processor time of the run's processes and of the whole machine from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Processor times in seconds, in total or between two samples.

    wall_s: the time that elapsed. cpu_s: for each name, the processor time of all its processes.
    wait_s: for each name, the longest time that one thread of its processes was ready to run and
    waited for a processor. busy_s, stolen_s: the busy and the stolen time of all processors
    together.
    """

    wall_s: float
    cpu_s: dict[str, float]
    wait_s: dict[str, float]
    busy_s: float
    stolen_s: float

    def since(self, earlier: Usage) -> Usage:
        """Returns what was used between two samples."""
        return self._with(earlier, -1)

    def __add__(self, other: Usage) -> Usage:
        return self._with(other, 1)

    def _with(self, other: Usage, sign: int) -> Usage:
        return Usage(
            self.wall_s + sign * other.wall_s,
            _each(self.cpu_s, other.cpu_s, sign),
            _each(self.wait_s, other.wait_s, sign),
            self.busy_s + sign * other.busy_s,
            self.stolen_s + sign * other.stolen_s,
        )


NOTHING = Usage(0.0, {}, {}, 0.0, 0.0)


def _each(ours: dict[str, float], theirs: dict[str, float], sign: int) -> dict[str, float]:
    return {n: ours.get(n, 0.0) + sign * theirs.get(n, 0.0) for n in [*ours, *theirs]}


def sample(pids: Mapping[str, Iterable[int]], now_s: float, proc: Path = Path("/proc")) -> Usage:
    """Returns the times so far of the machine and of the processes with each name. A process that
    has ended counts 0."""
    busy, stolen = _machine(proc)
    threads = {
        name: [times for pid in of_name for times in _threads(proc / str(pid))]
        for name, of_name in pids.items()
    }
    return Usage(
        now_s,
        {name: sum(run for run, _ in times) for name, times in threads.items()},
        {name: max((wait for _, wait in times), default=0.0) for name, times in threads.items()},
        busy,
        stolen,
    )


def _threads(process: Path) -> list[tuple[float, float]]:
    """Returns (running, waiting for a processor) of each thread, in seconds. The file schedstat has
    nanoseconds."""
    times = []
    for path in process.glob("task/*/schedstat"):
        try:
            run, wait, _ = path.read_text().split()
        except (OSError, ValueError):
            continue
        times.append((int(run) / 1e9, int(wait) / 1e9))
    return times


def _machine(proc: Path) -> tuple[float, float]:
    """Returns the machine's busy time and its stolen time. Busy time is all time except idle and
    iowait. Both are in the first line of /proc/stat."""
    fields = [int(f) for f in (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) * _TICK_S, steal * _TICK_S
