"""Aggregation in switches in virtual time, compared with ns-3, a simulator of packet networks.

Both simulate the same network, window, number of chunks and length of frames, without losses. ns-3
(simulators/ns3_aggregation.cc) moves packets without contents from link to link and counts them in
the switches. Agglab runs the compiled P4 program and the workers on real values, and verifies every
sum. Repetitions alternate, and medians of processor time are taken.

htsim cannot be installed as a package, and the rates that are published for it were measured with
other protocols on other machines. It is therefore not compared.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agglab.hosts import wire
from benchmarks import virtual_time
from benchmarks.row import Goal, Row

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "simulators" / "ns3_aggregation.cc"
HEADER = Path("/usr/include/ns3/point-to-point-module.h")
LIBRARIES = ("-lns3-point-to-point", "-lns3-network", "-lns3-core")
REPETITIONS = 3


@dataclass(frozen=True)
class Case:
    """A network and a round. lanes: of each packet. elements: of each worker's tensor."""

    racks: int
    workers_per_rack: int
    lanes: int
    elements: int
    goal: Goal | None = None

    @property
    def name(self) -> str:
        """What the rows call it."""
        return f"{self.racks * self.workers_per_rack} workers, {self.lanes} lanes"


CASES = (Case(1, 16, 64, 262_144, Goal(1)), Case(64, 16, 365, 65_536))


def run() -> list[Row]:
    """Runs the benchmark, which takes about a minute, and returns its rows. If ns-3 is not
    installed, prints a line about this to stderr and returns no rows. Raises RuntimeError if a sum
    is wrong or a worker of ns-3 did not end."""
    if not HEADER.exists() or shutil.which("g++") is None:
        print("simulators: needs ns-3 (apt-get install libns3-dev)", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory(prefix="agglab-bench-") as folder:
        program = _build(Path(folder))
        return [row for case in CASES for row in _rows(case, program)]


def _build(folder: Path) -> Path:
    program = folder / "ns3_aggregation"
    command = ["g++", "-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", "-o", str(program)]
    subprocess.run([*command, str(SOURCE), *LIBRARIES], check=True)
    return program


def _rows(case: Case, program: Path) -> Iterator[Row]:
    ours, theirs = [], []
    for _ in range(REPETITIONS):
        ours.append(_agglab_ns(case))
        theirs.append(_ns3_ns(case, program))
    frame_ns, ns3_ns = statistics.median(ours), statistics.median(theirs)
    yield Row("virtual", f"ns-3, {case.name}", 1e9 / ns3_ns, "frames/s", "ns-3", 1.0)
    ratio = ns3_ns / frame_ns
    yield Row(
        "virtual", f"agglab, {case.name}", 1e9 / frame_ns, "frames/s", "ns-3", ratio, case.goal
    )


def _agglab_ns(case: Case) -> float:
    """Returns the processor time in ns that a frame costs in virtual time. Each frame is one
    event."""
    cost = virtual_time.alone(case.racks, 0.0, case.workers_per_rack, case.lanes, case.elements)
    return cost.cpu_s * 1e9 / cost.events


def _ns3_ns(case: Case, program: Path) -> float:
    """Returns the processor time in ns that a frame costs in ns-3."""
    chunks = -(-case.elements // case.lanes)
    numbers = (
        *(case.racks, case.workers_per_rack, chunks, virtual_time.SLOTS),
        *(wire.frame_bytes(case.lanes), virtual_time.RATE_BPS),
    )
    result = json.loads(subprocess.check_output([str(program), *map(str, numbers)]))
    if result["done"] != case.racks * case.workers_per_rack:
        raise RuntimeError(f"ns-3: only {result['done']} workers have all results")
    return float(result["cpu_s"] * 1e9 / result["frames"])
