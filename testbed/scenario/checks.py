"""What no single key can tell: values that are possible alone and impossible together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

from agglab.hosts import wire
from agglab.hosts.driver import default_window
from agglab.testbed.places import P4_FOLDER
from agglab.testbed.plan import MAX_JOBS, job_trees
from agglab.testbed.scenario import expected_names, faults, graph
from agglab.testbed.scenario.errors import nearest, nearest_file
from agglab.testbed.scenario.jobs import (
    ETHERNET_BYTES,
    Finding,
    Tenant,
    drafted,
    lanes_that_fit,
    slot_problems,
    tenants,
    windows_too_large,
)
from agglab.testbed.scenario.known import Known
from agglab.testbed.scenario.reader import Reader
from agglab.testbed.scenario.schema import OF_KIND, SLOTS_MAX, Job, Scenario
from agglab.testbed.scenario.schema import Topology as Shape
from agglab.testbed.scenario.trust import Trust
from agglab.topologies import Topology

TENSORS_MAX_BYTES = 2**33

# Of the 64 packets that wait at an egress port of BMv2's before it drops the next; the rest is for
# what is sent again. Measured, quickstart: none lost up to 64, one in 74 with 113 in flight.
BMV2_IN_FLIGHT = 48
HOSTS_MAX = 1024  # p4/include/forwarding.p4: `size` of its tables
SHAPE_KEYS = tuple(item.name for item in fields(Shape) if item.name != "kind")


def check(scenario: Scenario, reader: Reader) -> None:
    """Append to `reader.problems` everything that can be told from the keys that were read rightly.

    Sections do not hide each other's mistakes: where a check needs a key that is wrong, that check
    alone is left out.
    """
    trust = reader.trust()
    found = [*_keys(scenario, trust), *_shape_keys(scenario, trust)]
    built = None
    if trust.whole("topology") and not any(path.startswith("topology") for path, _, _ in found):
        built, unbuildable = _built(scenario)
        found += unbuildable
    found += _jobs(scenario, trust)
    known = Known(scenario, built, drafted(scenario, built), trust)
    found += [*_of_graph(known), *faults.problems(known), *expected_names.unknown_names(known)]
    for path, what, allowed in found:
        reader.problem(reader.place(path), path, what, allowed)


def _keys(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Of the whole network."""
    if trust("switch.target", "backend"):
        yield from _target(scenario)
    if trust("switch.lanes", "links.mtu"):
        yield from _lanes(scenario)
    if trust("workload.window", "switch.slots"):
        yield from _window(scenario)
    if trust("links.mtu"):
        yield from _queues(scenario)


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


def _shape_keys(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Keys that its kind of topology does not have."""
    shape = scenario.topology
    for name in SHAPE_KEYS if trust("topology.kind") else ():
        default = getattr(type(shape)(), name)
        if getattr(shape, name) != default and name not in OF_KIND[shape.kind]:
            allowed = OF_KIND[shape.kind]
            what = f"has no meaning for {shape.kind}{nearest(name, allowed)}"
            yield f"topology.{name}", what, ", ".join(allowed)


def _built(scenario: Scenario) -> tuple[Topology | None, list[Finding]]:
    """The graph, with links as they are by default; or what is wrong with it."""
    plain = replace(scenario, links=type(scenario.links)(), faults=())
    try:
        built = graph.topology(plain)
    except ValueError as error:
        return None, [("topology", str(error), "docs/scenarios.md, Topologies")]
    if not built.hosts:
        return None, [("topology", "has no hosts", "at least one")]
    if len(built.hosts) > HOSTS_MAX:
        what = f"{len(built.hosts)} hosts are more than a switch has table entries for"
        return None, [("topology", what, f"at most {HOSTS_MAX}")]
    return built, []


def _jobs(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """What can be told of jobs without a network."""
    if not trust("jobs"):
        return
    if len(scenario.jobs) > MAX_JOBS:
        yield "jobs", f"{len(scenario.jobs)} jobs are too many", f"at most {MAX_JOBS}"
    names: set[str] = set()
    for i, job in enumerate(scenario.jobs):
        if job.name and job.name in names:
            yield f"jobs[{i}].name", f"'{job.name}' is the name of another job", "a name of its own"
        names.add(job.name)
        times_known = trust(f"jobs[{i}].start", f"jobs[{i}].end")
        if times_known and job.end_s is not None and job.end_s <= job.start_s:
            yield f"jobs[{i}].end", "is not after 'start'", "a later time"
    if trust("switch.partition", "switch.slots"):
        sure = [i for i in range(len(scenario.jobs)) if _slots_known(i, trust)]
        yield from slot_problems(scenario, sure if scenario.jobs else [0])
        if len(sure) == len(scenario.jobs):
            yield from windows_too_large(scenario)


def _slots_known(i: int, trust: Trust) -> bool:
    return trust(*(f"jobs[{i}].{name}" for name in ("slots", "first_slot", "share")))


def _of_graph(known: Known) -> Iterator[Finding]:
    """What the network's names and the jobs' hosts decide."""
    if known.graph is None:
        return
    yield from _overrides(known.scenario, known.graph, known.trust)
    reasons = set()
    for i, job in enumerate(known.jobs):
        if not known.hosts_known(job):
            continue
        if not job.hosts:
            names = [host.name for host in known.graph.hosts]
            patterns = ", ".join(known.scenario.jobs[i].workers)
            what = f"match no host{nearest(patterns, names)}"
            yield f"jobs[{i}].workers", what, f"{', '.join(names)}, or patterns of them"
            continue
        yield from _tensors(known, i, job)
        reason = _no_tree(known.graph, i, job)
        if reason and reason.partition(": ")[2] not in reasons:
            reasons.add(reason.partition(": ")[2])
            yield "topology", reason, "docs/scenarios.md, Topologies"


def _no_tree(built: Topology, i: int, job: Tenant) -> str:
    """Why no tree of switches joins the job's hosts; nothing if one does."""
    try:
        job_trees(built, [*[None] * i, job.placed(i)])
    except ValueError as error:
        return str(error)
    return ""


def _tensors(known: Known, i: int, job: Tenant) -> Iterator[Finding]:
    path = f"jobs[{i}].workload.elements" if known.scenario.jobs else "workload.elements"
    workers = len(job.hosts)
    needed = job.workload.elements * workers * wire.VALUE_BYTES
    if needed > TENSORS_MAX_BYTES and known.workload_known(job, "elements"):
        most = TENSORS_MAX_BYTES // (wire.VALUE_BYTES * workers)
        what = f"the tensors of {workers} workers need more than 8 GiB"
        yield path, what, f"at most {most} for so many workers"


def _overrides(scenario: Scenario, built: Topology, trust: Trust) -> Iterator[Finding]:
    for i, override in enumerate(scenario.links.overrides):
        if trust(f"links.overrides[{i}].match") and not graph.matches(override, built):
            names = [link.name for link in built.links]
            what = f"'{override.match}' matches no link{nearest(override.match, names)}"
            allowed = f"{', '.join(names)}, or a pattern of them"
            yield f"links.overrides[{i}].match", what, allowed
