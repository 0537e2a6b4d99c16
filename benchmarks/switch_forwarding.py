"""The packet rate of Agglab's switch while it aggregates, compared with a forwarder that only
copies.

The copy forwarder (switch/copy_forwarder.c) sends each frame back, with the same rings and system
calls as the switch. The copy forwarder gets single packets. The switch is measured with single
packets, and also with buffers of up to 64 packets. Repetitions of these measurements alternate, and
medians are taken (lab.py).
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import lab
from benchmarks.lab import Lab, Samples
from benchmarks.row import Goal, Row

LANES = (64, 256, 2240)
REPETITIONS = 5
BUFFERED = "native switch, buffers"
GOALS = {
    "native switch": {64: Goal(0.9), 256: Goal(0.9)},
    BUFFERED: {64: Goal(3), 256: Goal(2), 2240: Goal(1)},
}
PROCESSOR_GOALS = {
    name: {lanes: Goal(1 / goal.limit, most=True) for lanes, goal in goals.items()}
    for name, goals in GOALS.items()
}
"""The same goals for processor time. They are useful on a machine that others use too, where
packets/s say little."""


def run() -> list[Row]:
    """Runs the benchmarks, which takes about a minute, and returns their rows. Raises RuntimeError
    with a message that names what the machine lacks."""
    lab.need_root()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="agglab-bench-") as folder:
        tools = lab.build_tools(Path(folder))
        for lanes in LANES:
            with Lab(Path(folder), tools) as place:
                rows += _rows(lanes, _measure(place, lanes))
    return rows


def _rows(lanes: int, samples: dict[str, Samples]) -> Iterator[Row]:
    copy = samples["copy forwarder"]
    copy_rate = statistics.median(copy.rates)
    copy_cpu = statistics.median(copy.cpu_ns)
    for name, sample in samples.items():
        rate = statistics.median(sample.rates)
        what = f"{name}, {lanes} lanes"
        goal = GOALS.get(name, {}).get(lanes)
        yield Row("switch", what, rate, "packets/s", "copy forwarder", rate / copy_rate, goal)
    for name, sample in samples.items():
        cpu = statistics.median(sample.cpu_ns)
        what = f"{name}, {lanes} lanes, processor"
        goal = PROCESSOR_GOALS.get(name, {}).get(lanes)
        yield Row("switch", what, cpu, "ns/packet", "copy forwarder", cpu / copy_cpu, goal)


def _measure(place: Lab, lanes: int) -> dict[str, Samples]:
    program = lab.aggregation("agglab", lanes)
    kinds = {
        "copy forwarder": lab.copy_forwarder,
        "native switch": lab.native_switch,
        BUFFERED: lab.buffered_switch,
    }
    samples = {name: Samples() for name in kinds}
    for _ in range(REPETITIONS):
        for name, measure in kinds.items():
            samples[name].add(*lab.patiently(partial(measure, place, lanes, program)))
    return samples
