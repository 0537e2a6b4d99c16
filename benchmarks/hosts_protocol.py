"""The speed of the hosts' protocol code, as a ratio to copying the same bytes in the same run.

`run()` returns the rows; `python -m benchmarks.hosts_protocol` prints them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import quantise
from agglab.hosts.wire import RESULT, Batch
from agglab.systems.switchml.worker import Job, Worker
from benchmarks.row import Row

ELEMENTS = 1 << 20
WORKERS = 4
WINDOW = 128
REPEATS = 7


def run() -> list[Row]:
    """Runs the benchmark, which takes about two seconds, and returns its rows."""
    values = np.random.default_rng(1).standard_normal(ELEMENTS).astype(np.float32)
    target = np.empty_like(values)
    copy_s = _best(lambda: np.copyto(target, values))
    rows = list(_conversion_rows(values, copy_s))
    for lanes, batch in ((64, 8), (256, 1), (256, 8), (256, 32), (2240, 8)):
        rows.append(_worker_row(values, lanes, batch, copy_s / ELEMENTS))
    return rows


def _best(call: Callable[[], object]) -> float:
    """Returns the time of the fastest of several calls, in seconds."""
    return min(_seconds(call) for _ in range(REPEATS))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _conversion_rows(values: NDArray[np.float32], copy_s: float) -> list[Row]:
    lanes = 256
    exponents = quantise.chunk_exponents(values, lanes)
    wire, back = np.empty(ELEMENTS, ">i4"), np.empty_like(values)
    calls: dict[str, Callable[[], object]] = {
        "exponents of chunks": lambda: quantise.chunk_exponents(values, lanes, exponents),
        "quantise to wire order": lambda: quantise.quantise(
            values, exponents, WORKERS, lanes, wire
        ),
        "dequantise from wire order": lambda: quantise.dequantise(
            wire, exponents, WORKERS, lanes, back
        ),
    }
    rows = []
    for what, call in calls.items():
        seconds = _best(call)
        gigabytes = values.nbytes / seconds / 1e9
        ratio = copy_s / seconds
        rows.append(Row("hosts", what, gigabytes, "GB/s", "numpy copy", ratio))
    return rows


def _worker_row(
    values: NDArray[np.float32], lanes: int, batch: int, copy_per_element_s: float
) -> Row:
    """Measures the processor time in which a worker takes one result and makes its next
    contribution, and returns the row."""
    seconds = min(_worker_seconds(values, lanes, batch) for _ in range(3))
    copy_s = 2 * lanes * copy_per_element_s
    what = f"worker, {lanes} lanes, batches of {batch}"
    baseline = "copying the values twice"
    return Row("hosts", what, seconds * 1e9, "ns/packet", baseline, seconds / copy_s)


def _worker_seconds(values: NDArray[np.float32], lanes: int, batch: int) -> float:
    """Returns the mean processor time, in seconds, for each packet of a round without loss. The
    packets that the worker sends are returned to it as results."""
    worker = Worker(Job(0, WORKERS, lanes, WINDOW, WINDOW))
    worker.begin(0, values, np.ones_like(values), np.ones(values.size, np.int32))
    results = Batch(batch, lanes)
    worker.poll(0)
    first, packets, seconds = 0, 0, 0.0
    while not worker.done:
        _echo(worker, results, first)
        start = time.perf_counter()
        worker.on_datagrams(1000, results)
        worker.poll(1000)
        seconds += time.perf_counter() - start
        first, packets = (first + results.count) % WINDOW, packets + results.count
    return seconds / packets


def _echo(worker: Worker, results: Batch, first: int) -> None:
    """Fills `results` with the contributions of slots in flight, turned into results, beginning
    with slot `first`."""
    results.count = min(results.capacity, worker.in_flight)
    for row in range(results.count):
        slot = (first + row) % WINDOW
        length = int(worker.slots["length"][slot])
        results.buffer[row, :length] = worker.frames[slot, :length]
        results.lengths[row] = length
    results.buffer[: results.count, 1] |= RESULT


if __name__ == "__main__":
    for row in run():
        print(f"{row.what:34} {row.value:9.1f} {row.unit:10} {row.ratio:5.2f} x {row.baseline}")
