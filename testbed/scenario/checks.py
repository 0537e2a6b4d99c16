"""What no single key can tell: values that are possible alone and impossible together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hosts import wire
from hosts.driver import default_window
from testbed.places import P4_FOLDER
from testbed.plan import job_trees
from testbed.scenario import expected_names, faults, graph
from testbed.scenario.errors import nearest, nearest_file
from testbed.scenario.jobs import (
    ETHERNET_BYTES,
    Tenant,
    Unplaced,
    hosts_of,
    lanes_that_fit,
    tenants,
)
from testbed.scenario.reader import Reader
from testbed.scenario.schema import OF_KIND, SLOTS_MAX, Job, Scenario
from testbed.scenario.schema import Topology as Shape
from topologies import Topology

TENSORS_MAX_BYTES = 2**33

# Of the 64 packets that wait at an egress port of BMv2's before it drops the next; the rest is for
# what is sent again. Measured, quickstart: none lost up to 64, one in 74 with 113 in flight.
BMV2_IN_FLIGHT = 48
HOSTS_MAX = 1024  # p4/include/forwarding.p4: `size` of its tables
SHAPE_KEYS = tuple(item.name for item in fields(Shape) if item.name != "kind")

Finding = tuple[str, str, str]
"""Key path, what is wrong, what is allowed."""
Finder = Callable[..., Iterator[Finding]]


def check(scenario: Scenario, reader: Reader) -> None:
    """Append to `reader.problems`; keys that were already found wrong are not judged again."""
    wrong = {_section(problem.path) for problem in reader.problems}

    def report(finder: Finder, *arguments: Any) -> bool:
        if wrong & _READS[finder.__name__]:
            return False
        found = list(finder(scenario, *arguments))
        for path, what, allowed in found:
            reader.problem(reader.place(path), path, what, allowed)
        return not found

    report(_target)
    report(_lanes)
    report(_window)
    if not (report(_queues) and report(_shape)):
        return
    built = graph.topology(
        replace(scenario, links=replace(scenario.links, overrides=()), faults=())
    )
    report(_overrides, built)
    if report(_jobs, built):
        jobs = tenants(scenario, built)
        report(_tensors, jobs)
        report(_trees, built, jobs)
        report(faults.problems, built, jobs)
        report(expected_names.unknown_names, built, jobs)


def _section(path: str) -> str:
    """`topology.workers`, but `jobs` and `faults` as a whole."""
    return path.partition("[")[0]


_READS = {
    "_target": {"switch.target", "backend"},
    "_lanes": {"switch.lanes", "links.mtu"},
    "_window": {"workload.window", "switch.slots"},
    "_queues": {"links.queue", "links.mtu", "links.overrides"},
    "_shape": {"topology", *(f"topology.{name}" for name in ("kind", *SHAPE_KEYS))},
    "_tensors": {"workload.elements", "jobs"},
    "_overrides": {"links.overrides"},
    "_jobs": {"jobs", "switch.slots", "switch.partition"},
    "_trees": {"jobs"},
    "unknown_names": {"jobs"},
    "problems": {
        "faults",
        "jobs",
        "links.loss",
        "links.overrides",
        "switch.lanes",
        "workload.elements",
        "workload.rounds",
    },
}


def resolve(scenario: Scenario) -> Scenario:
    """`auto` replaced by what it stands for."""
    switch = scenario.switch
    lanes = switch.lanes or lanes_that_fit(scenario.links.mtu_bytes)
    scenario = replace(scenario, switch=replace(switch, lanes=lanes))
    built = graph.topology(scenario)
    ways = [way for link in built.links for _, _, _, way in link.directions()]
    slowest_bps = min(way.rate_bps or scenario.links.rate_bps for way in ways)
    most = _window_at_most(scenario)

    def auto(slots: int) -> int:
        return min(most, default_window(slots, lanes, slowest_bps))

    window = scenario.workload.window or auto(switch.slots)
    placed = [
        _resolved(job, tenant, auto(tenant.slots), switch.partition)
        for job, tenant in zip(scenario.jobs, tenants(scenario, built), strict=False)
    ]
    return replace(
        scenario,
        topology=graph.resolved(scenario.topology),
        workload=replace(scenario.workload, window=window),
        jobs=tuple(placed),
    )


def _window_at_most(scenario: Scenario) -> int:
    """Chunks of one job in flight that a target's queues hold, whoever else is running: each puts
    at most one packet into the queue of a port, and what is sent again another."""
    if scenario.switch.target != "bmv2":
        return SLOTS_MAX
    return max(1, BMV2_IN_FLIGHT // max(1, len(scenario.jobs)))


def _resolved(job: Job, tenant: Tenant, window: int, partition: str) -> Job:
    """With its name, its place among the slots and its window."""
    static = partition == "static"
    return replace(
        job,
        name=tenant.name,
        slots=tenant.slots if static else None,
        first_slot=tenant.first_slot if static else None,
        workload=replace(job.workload, window=min(job.workload.window or window, tenant.slots)),
    )


def find_program(program: str, scenario_folder: Path) -> Path | None:
    """The .p4 file that `switch.program` means, or None."""
    candidates = [P4_FOLDER / f"{program}.p4"] if "/" not in program else []
    candidates += [scenario_folder / program, Path(program)]
    return next((path.resolve() for path in candidates if os.path.isfile(path)), None)


def program_problem(program: str, scenario_folder: Path) -> tuple[str, str]:
    """What is wrong with a program that was not found, and what is allowed."""
    known = sorted(path.stem for path in P4_FOLDER.glob("*.p4"))
    near = nearest(program, known) or nearest_file(program, (scenario_folder, Path()), "*.p4")
    return (
        f"no such program '{program}'{near}",
        f"{', '.join(known)} (from p4/), or the path of a .p4 file",
    )


def _target(scenario: Scenario) -> Iterator[Finding]:
    if scenario.backend == "virtual" and scenario.switch.target != "native":
        what = f"{scenario.switch.target} does not run on virtual time"
        yield "switch.target", what, "native, or backend: mininet"


def _lanes(scenario: Scenario) -> Iterator[Finding]:
    most = lanes_that_fit(scenario.links.mtu_bytes)
    lanes = scenario.switch.lanes
    if lanes is not None and lanes > most:
        what = f"{lanes} lanes do not fit an MTU of {scenario.links.mtu_bytes} bytes"
        yield "switch.lanes", what, f"at most {most}, or auto"


def _window(scenario: Scenario) -> Iterator[Finding]:
    window = scenario.workload.window
    if window is not None and window > scenario.switch.slots:
        what = f"a window of {window} chunks is more than the switch has slots"
        yield "workload.window", what, f"at most switch.slots, {scenario.switch.slots}"


def _queues(scenario: Scenario) -> Iterator[Finding]:
    """Every queue holds a frame of the MTU, or nothing would ever leave it."""
    frame_bytes = scenario.links.mtu_bytes + ETHERNET_BYTES
    stated = [("links.queue", scenario.links.queue_bytes)]
    for i, override in enumerate(scenario.links.overrides):
        stated.append((f"links.overrides[{i}].queue", override.queue_bytes))
    for path, queue_bytes in stated:
        if queue_bytes is not None and queue_bytes < frame_bytes:
            what = f"{queue_bytes} bytes hold no frame of {frame_bytes}"
            yield path, what, f"at least {frame_bytes}B with an MTU of {scenario.links.mtu_bytes}"


def _shape(scenario: Scenario) -> Iterator[Finding]:
    """A topology that can be built, of keys that its kind has."""
    shape = scenario.topology
    for name in SHAPE_KEYS:
        default = getattr(type(shape)(), name)
        if getattr(shape, name) != default and name not in OF_KIND[shape.kind]:
            allowed = OF_KIND[shape.kind]
            what = f"has no meaning for {shape.kind}{nearest(name, allowed)}"
            yield f"topology.{name}", what, ", ".join(allowed)
            return
    try:
        built = graph.SHAPES[shape.kind](graph.resolved(shape))
    except ValueError as error:
        yield "topology", str(error), "docs/scenarios.md, Topologies"
        return
    if not built.hosts:
        yield "topology", "has no hosts", "at least one"
    elif len(built.hosts) > HOSTS_MAX:
        what = f"{len(built.hosts)} hosts are more than a switch has table entries for"
        yield "topology", what, f"at most {HOSTS_MAX}"


def _jobs(scenario: Scenario, built: Topology) -> Iterator[Finding]:
    names: set[str] = set()
    for i, job in enumerate(scenario.jobs):
        if job.name and job.name in names:
            yield f"jobs[{i}].name", f"'{job.name}' is the name of another job", "a name of its own"
        names.add(job.name)
        if not hosts_of(job, built):
            hosts = [host.name for host in built.hosts]
            what = f"match no host{nearest(', '.join(job.workers), hosts)}"
            yield f"jobs[{i}].workers", what, f"{', '.join(hosts)}, or patterns of them"
        if job.end_s is not None and job.end_s <= job.start_s:
            yield f"jobs[{i}].end", "is not after 'start'", "a later time"
    try:
        placed = tenants(scenario, built)
    except Unplaced as error:
        yield error.path, error.what, error.allowed
        return
    for i, (job, tenant) in enumerate(zip(scenario.jobs, placed, strict=False)):
        if (job.workload.window or 0) > tenant.slots:
            what = f"a window of {job.workload.window} chunks is more than the job has slots"
            if scenario.jobs[i].workload.window != scenario.workload.window:
                yield f"jobs[{i}].workload.window", what, f"at most {tenant.slots}"


def _trees(scenario: Scenario, built: Topology, jobs: Sequence[Tenant]) -> Iterator[Finding]:
    """Every job has a tree of switches; slots are a matter of `_jobs`."""
    try:
        job_trees(built, [job.placed(i) for i, job in enumerate(jobs)])
    except ValueError as error:
        yield "topology", str(error), "docs/scenarios.md, Topologies"


def _tensors(scenario: Scenario, jobs: Sequence[Tenant]) -> Iterator[Finding]:
    for i, job in enumerate(jobs):
        path = f"jobs[{i}].workload.elements" if scenario.jobs else "workload.elements"
        workers = len(job.hosts)
        if job.workload.elements * workers * wire.VALUE_BYTES > TENSORS_MAX_BYTES:
            most = TENSORS_MAX_BYTES // (wire.VALUE_BYTES * workers)
            what = f"the tensors of {workers} workers need more than 8 GiB"
            yield path, what, f"at most {most} for so many workers"


def _overrides(scenario: Scenario, built: Topology) -> Iterator[Finding]:
    for i, override in enumerate(scenario.links.overrides):
        if not graph.matches(override, built):
            names = [link.name for link in built.links]
            what = f"'{override.match}' matches no link{nearest(override.match, names)}"
            allowed = f"{', '.join(names)}, or a pattern of them"
            yield f"links.overrides[{i}].match", what, allowed
