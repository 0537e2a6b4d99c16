"""The cost of simulation in virtual time: processor time and memory for 64 to 1024 workers with
65,536 values each.

`run()` takes about a minute and returns the rows. A `ratio` near 1 means that the cost grows
linearly with the number of workers.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass

from agglab.testbed import systems
from agglab.testbed.scenario import resolve
from agglab.testbed.schema.network_sections import Links, Switch, Topology
from agglab.testbed.schema.scenario import Scenario, Timeouts
from agglab.testbed.schema.workload_section import Workload
from agglab.verification import programs
from agglab.verification.trial import everywhere, findings, native, simulate
from benchmarks.row import Row

ELEMENTS, LANES, SLOTS, WORKERS_PER_RACK = 65_536, 365, 64, 16
RACKS = (4, 16, 64)
RATE_BPS = 1_000_000_000
LOSS = 0.01


@dataclass(frozen=True)
class Cost:
    """The cost of simulating one round. memory_bytes: the largest amount of memory that the process
    used."""

    cpu_s: float
    events: int
    memory_bytes: int


def run() -> list[Row]:
    """Runs the benchmark and returns its rows. Raises RuntimeError if a sum is wrong."""
    return list(_rows())


def _rows() -> Iterator[Row]:
    costs = {racks: alone(racks, 0.0) for racks in RACKS}
    first = costs[RACKS[0]]
    for racks, cost in costs.items():
        ratio = cost.cpu_s / first.cpu_s * RACKS[0] / racks
        what = f"{racks * WORKERS_PER_RACK} workers in {racks} racks"
        baseline = f"per worker, {RACKS[0] * WORKERS_PER_RACK} workers"
        yield Row("virtual", what, cost.cpu_s, "s cpu", baseline, ratio)
    for racks, cost in costs.items():
        what = f"{racks * WORKERS_PER_RACK} workers: an event"
        event_us = cost.cpu_s / cost.events * 1e6
        ratio = event_us / (first.cpu_s / first.events * 1e6)
        yield Row(
            "virtual", what, event_us, "us cpu", f"{RACKS[0] * WORKERS_PER_RACK} workers", ratio
        )
    racks = RACKS[-1]
    lossy = alone(racks, LOSS)
    what = f"{racks * WORKERS_PER_RACK} workers, 1 % loss"
    baseline = "without loss"
    yield Row("virtual", what, lossy.cpu_s, "s cpu", baseline, lossy.cpu_s / costs[racks].cpu_s)
    tensors = racks * WORKERS_PER_RACK * ELEMENTS * 4
    memory = lossy.memory_bytes
    yield Row("virtual", f"{what}: memory", memory / 1e9, "GB", "the tensors", memory / tensors)


def alone(
    racks: int,
    loss: float,
    workers_per_rack: int = WORKERS_PER_RACK,
    lanes: int = LANES,
    elements: int = ELEMENTS,
) -> Cost:
    """Measures one round in a separate process, so that the largest amount of memory is that of
    this round alone. Raises RuntimeError if a sum is wrong."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_cost, (racks, loss, workers_per_rack, lanes, elements))


def _cost(racks: int, loss: float, workers_per_rack: int, lanes: int, elements: int) -> Cost:
    program = programs.compiled(systems.default(), lanes, SLOTS)
    assert native(program.json), "compiled before the time is taken"
    topology = Topology("rack", workers=workers_per_rack)
    if racks > 1:
        topology = Topology("two_tier", workers=workers_per_rack, racks=racks)
    scenario = Scenario(
        name="virtual_time",
        topology=topology,
        links=Links(rate_bps=RATE_BPS, loss=loss),
        switch=Switch(lanes=lanes, slots=SLOTS),
        workload=Workload(elements=elements, dtype="int32", rounds=1, window=SLOTS, give_up_s=60.0),
        timeouts=Timeouts(round_s=600.0),
    )
    begun_cpu_s = time.process_time()
    resolved = resolve(scenario)
    ended = simulate(resolved, everywhere(program, resolved))
    cpu_s = time.process_time() - begun_cpu_s
    for finding in findings(resolved, ended):
        raise RuntimeError(str(finding))
    memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Cost(cpu_s, ended.actions, memory_bytes)
