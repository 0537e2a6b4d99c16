"""Runs the points of a sweep, one after the other or in several processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from agglab.testbed.base import processors
from agglab.verification.sweep.points import Point
from agglab.verification.sweep.progress import Record
from agglab.verification.sweep.trial import Outcomes, Subject


def run_all(points: Sequence[Point], record: Record, processes: int) -> None:
    """Runs all points that the record lacks, and adds them to it. Writes progress to stderr.
    Raises ScenarioError or CompileError for a point that cannot be run."""
    left = [point for point in points if not record.has(point)]
    began_s, red = time.monotonic(), 0
    for done, (point, outcomes) in enumerate(_outcomes(left, record.seeds, processes), start=1):
        record.add(point, outcomes)
        red += len({each.seed for each in outcomes.reds})
        left_s = (time.monotonic() - began_s) / done * (len(left) - done)
        text = f"{done} of {len(left)} points, {red} red runs, about {left_s:.0f} s left: {point}"
        end = "\n" if not sys.stderr.isatty() or done == len(left) else "\r"
        print(f"\r\033[K{text}" if end == "\r" else text, end=end, file=sys.stderr, flush=True)


def _outcomes(
    points: Sequence[Point], seeds: range, processes: int
) -> Iterator[tuple[Point, Outcomes]]:
    if processes == 1:
        yield from ((point, _run(point, seeds)) for point in points)
        return
    with ProcessPoolExecutor(processes, initializer=processors.leave_one) as pool:
        futures = {pool.submit(_run, point, seeds): point for point in points}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _run(point: Point, seeds: range) -> Outcomes:
    return Subject(point).outcomes(seeds)
