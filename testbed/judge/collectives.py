"""What went where: which collectives of a training script went through the system and which by
Gloo. The finding `not-aggregated` says that a system that was to sum did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NOT_AGGREGATED = "not-aggregated"
SYSTEM = "system"
WAYS = {
    SYSTEM: "through the system",
    "collective": "by Gloo (no all-reduce)",
    "group": "by Gloo (a group of fewer ranks than the job has)",
    "op": "by Gloo (neither SUM nor the AVG of floats)",
    "dtype": "by Gloo (a type of values that the system does not sum)",
    "sparse": "by Gloo (sparse tensors)",
    "device": "by Gloo (tensors that are not in the processor's memory)",
    "empty": "by Gloo (no tensor)",
}
"""The words for each way that the script's process group counts (hosts/training/backend.py)."""
REDUCING = ("allreduce", "reduce")
"""How the names of the collectives begin that sum values."""


@dataclass(frozen=True)
class Calls:
    """The calls of one collective that went one way, at the first rank. way: a key of WAYS."""

    collective: str
    way: str
    calls: int
    size_bytes: int

    def __str__(self) -> str:
        times = "once" if self.calls == 1 else f"{self.calls} times"
        return f"{self.collective} {times}, {_size(self.size_bytes)}"


def calls_of(job: Mapping[str, Any]) -> list[Calls]:
    """Returns what the script of a job called, with the most bytes first. job: its metrics. The
    list is empty if the job has no script."""
    counts = job.get("training", {}).get("counts", {})
    calls = []
    for name, number in counts.items():
        collective, _, way = name.rpartition("_")
        if way in WAYS:
            calls.append(Calls(collective, way, number, counts.get(f"{name}_bytes", 0)))
    return sorted(calls, key=lambda each: (-each.size_bytes, each.collective, each.way))


def sentence(calls: Sequence[Calls]) -> str:
    """Returns in one line which collectives went which way."""
    parts = [
        f"{words}: {', '.join(str(each) for each in calls if each.way == way)}"
        for way, words in WAYS.items()
        if any(each.way == way for each in calls)
    ]
    return "; ".join(parts)


def not_aggregated(
    jobs: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields a sentence and numbers for each job with a script whose sums the system did not make,
    or of which Gloo summed more bytes. jobs: the metrics of jobs by name."""
    for name, job in jobs.items():
        if "reductions" not in job.get("training", {}):
            continue
        calls = calls_of(job)
        summed = [each for each in calls if each.collective.startswith(REDUCING)]
        by_gloo = sum(each.size_bytes for each in summed if each.way != SYSTEM)
        by_system = job["training"]["reduced_bytes"]
        if by_system and by_gloo <= by_system:
            continue
        numbers = {"system_bytes": by_system, "gloo_bytes": by_gloo}
        yield f"{_beginning(name, by_system, by_gloo)}; {_cause(calls)}", numbers


def _beginning(job: str, by_system: float, by_gloo: float) -> str:
    if not by_system:
        return f"the system summed nothing for {job}"
    return f"the system summed {_size(by_system)} for {job}, and Gloo {_size(by_gloo)}"


def _cause(calls: Sequence[Calls]) -> str:
    return sentence(calls) or "its script called no collective of the backend agglab"


def _size(size_bytes: float) -> str:
    for unit, unit_bytes in (("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= unit_bytes:
            return f"{size_bytes / unit_bytes:.3g} {unit}"
    return f"{size_bytes:.0f} bytes"
