"""Decides whether a repeated result agrees with the packed one. Virtual runs must agree byte for
byte, and real ones within the tolerance that the pack states for times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agglab.testbed.cli.comparing.differences import Pair, Times, compare, read
from agglab.testbed.judge.fidelity import OF_THE_MACHINE
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.side_by_side import runs_of

SAME_BYTES = ("metrics.json", "events.jsonl", "drops.json", "series.csv", "latency.csv")
"""The files that virtual time reproduces exactly. The manifest and the logs are not among them,
because they name the machine and the day."""
JUDGED = ("verdict", "exact", "error.within", "links_as_predicted")
"""The values of a real run that must be the same on any machine. The fidelity verdict is not among
them, because it depends on the machine."""


def virtual_differences(packed: Path, again: Path) -> Iterator[str]:
    """Yields a line for each file of a virtual run that differs."""
    names = {_inside(path, folder) for folder in (packed, again) for path in _compared(folder)}
    for name in sorted(names):
        first, second = packed / name, again / name
        if not first.is_file() or not second.is_file():
            yield f"{name}: is in only one of the two results"
        elif first.read_bytes() != second.read_bytes():
            yield f"{name}: differs{_first_difference(first.read_bytes(), second.read_bytes())}"


def _compared(folder: Path) -> Iterator[Path]:
    for name in SAME_BYTES:
        yield from folder.rglob(name)


def _inside(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder))


def _first_difference(a: bytes, b: bytes) -> str:
    lines = zip(a.splitlines(), b.splitlines(), strict=False)
    number = next((i for i, (one, other) in enumerate(lines, start=1) if one != other), None)
    return f" from line {number} on" if number else " in its length"


def real_differences(packed: Path, again: Path, within: float) -> Iterator[str]:
    """Yields a line for each value of a real run that does not agree. Raises NoResults."""
    found = compare(read(packed), read(again))
    for label in found.unmatched:
        yield f"{label}: is in only one of the two results"
    if not found.pairs:
        yield "no run is in both results"
    for pair in found.pairs:
        for text in _of_pair(pair, within):
            yield f"{pair.label}: {text}" if pair.label else text
    for run in runs_of(found.b.metrics):
        verdict = lookup(run.metrics, "fidelity.verdict")
        if verdict in OF_THE_MACHINE:
            yield (
                f"this machine was too slow ({verdict}), so its times say nothing about the network"
            )


def _of_pair(pair: Pair, within: float) -> Iterator[str]:
    for flag in pair.flags:
        if flag.path in JUDGED:
            yield f"{flag.path} was {flag.a} in the pack and is {flag.b} here"
    for times in pair.times:
        if not _agree(times, within):
            ratio = f"{times.difference.ratio:.3g} times" if times.difference else "not"
            yield (
                f"{times.job}: a round takes {ratio} as long, and the limit of the difference "
                f"is {within:.0%}"
            )


def _agree(times: Times, within: float) -> bool:
    """Returns whether the times agree within the tolerance. They also agree if neither run has
    rounds; the flags of metrics.json tell whether that is right."""
    if times.difference is None:
        return len(times.a) == len(times.b) == 0 or times.same
    return 1 / (1 + within) <= times.difference.ratio <= 1 + within
