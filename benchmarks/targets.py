"""The packet rates of the targets: Agglab's switch and BMv2, each with the aggregation programs of
both compilers.

Workers send single packets. Agglab's switch is also measured with buffers of up to 64 packets, as
workers send them on links that carry buffers; BMv2 cannot receive buffers. Repetitions alternate
between the kinds, and medians are taken (lab.py). The row `frames returned` is BMv2 with a program
that only returns frames. It shows the part of BMv2's cost that no better compiled program could
avoid.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.real.targets import require
from agglab.testbed.run.programs.program import compile_program
from benchmarks import lab
from benchmarks.lab import Lab, Sample, Samples
from benchmarks.row import Goal, Row

LANES = (64, 256, 2048)
REPETITIONS = 5
NATIVE, BUFFERED, BMV2 = "native", "native, buffers", "bmv2"
GOALS = {
    NATIVE: {64: Goal(10), 256: Goal(10)},
    BUFFERED: {64: Goal(50), 256: Goal(50)},
}


def run() -> list[Row]:
    """Runs the benchmarks, which takes about a minute, and returns their rows. If BMv2 is not
    installed, prints a line about this to stderr and returns no rows. Raises RuntimeError with a
    message that names anything else that the machine lacks."""
    lab.need_root()
    try:
        require("bmv2")
    except MachineLacks as lack:
        print(f"targets: nothing to compare: {lack}", file=sys.stderr)
        return []
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="agglab-bench-") as folder:
        tools = lab.build_tools(Path(folder))
        for lanes in LANES:
            with Lab(Path(folder), tools) as place:
                rows += _rows(lanes, _measure(place, lanes))
    return rows


def _measure(place: Lab, lanes: int) -> dict[str, Samples]:
    kinds = _kinds(place, lanes)
    samples = {name: Samples() for name in kinds}
    for _ in range(REPETITIONS):
        for name, measure in kinds.items():
            samples[name].add(*lab.patiently(measure))
    return samples


def _kinds(place: Lab, lanes: int) -> dict[str, Callable[[], Sample]]:
    ours = lab.aggregation("agglab", lanes)
    reflect = compile_program(
        lab.SOURCES / "reflect.p4", "agglab", {"LANES": lanes, "SLOTS": lab.SLOTS}
    )
    kinds: dict[str, Callable[[], Sample]] = {
        NATIVE: lambda: lab.native_switch(place, lanes, ours),
        BUFFERED: lambda: lab.buffered_switch(place, lanes, ours),
        BMV2: lambda: lab.bmv2(place, lanes, ours),
    }
    if shutil.which("p4c-bm2-ss"):
        theirs = lab.aggregation("p4c", lanes)
        kinds["bmv2, p4c"] = lambda: lab.bmv2(place, lanes, theirs)
    kinds["bmv2, frames returned"] = lambda: lab.bmv2(place, lanes, reflect, filled=False)
    return kinds


def _rows(lanes: int, samples: dict[str, Samples]) -> Iterator[Row]:
    rates = {name: statistics.median(sample.rates) for name, sample in samples.items()}
    costs = {name: statistics.median(sample.cpu_ns) for name, sample in samples.items()}
    for name, rate in rates.items():
        what = f"{name}, {lanes} lanes"
        goal = GOALS.get(name, {}).get(lanes)
        yield Row("targets", what, rate, "packets/s", BMV2, rate / rates[BMV2], goal)
    for name, cost in costs.items():
        what = f"{name}, {lanes} lanes, cpu"
        yield Row("targets", what, cost, "ns/packet", NATIVE, cost / costs[NATIVE])
