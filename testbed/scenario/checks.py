"""Checks a whole scenario: finds values that are each possible alone but cannot be combined."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path

from agglab.hosts import wire
from agglab.hosts.workloads import Layers, Sgd
from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.base.problems import nearest, nearest_file
from agglab.testbed.scenario import expected_names, faults, graph, workloads
from agglab.testbed.scenario.job_list import jobs_of
from agglab.testbed.scenario.known import Known
from agglab.testbed.scenario.links import matches
from agglab.testbed.scenario.reader import Reader
from agglab.testbed.schema.jobs import Finding, Job, stated_workloads
from agglab.testbed.schema.key import default_of, yaml_name
from agglab.testbed.schema.network_sections import OF_KIND
from agglab.testbed.schema.network_sections import Topology as Shape
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.base import SHARED_KEYS, ActiveJob, Source, tensor_bytes
from agglab.topologies import Topology

TENSORS_MAX_BYTES = 2**33
ETHERNET_BYTES = 14
MAX_JOBS = 16
VIRTUAL_HOSTS_MAX = 16_384
REAL_HOSTS_MAX = 1024  # each has a process and a network namespace
SHAPE_KEYS = tuple(item.name for item in fields(Shape) if item.name != "kind")


def check(scenario: Scenario, reader: Reader) -> Topology | None:
    """Appends to `reader.problems` the problems of combinations of keys that were each read without
    error. Returns the network as `graph.bare` makes it, if it can be built.

    A mistake in one section does not hide those in others: a check is skipped only if a key that it
    needs is wrong.
    """
    trust = reader.trust()
    system = reader.system
    found = [*_abilities(scenario, reader), *_keys(scenario, trust)]
    found += [*system.check(scenario, trust), *_shape_keys(scenario, trust)]
    found += _bridge(scenario, trust)
    built, unbuildable = _built(scenario, trust)
    if any(path.startswith("topology") for path, _, _ in found):
        built = None  # what is meant may be another
    found += unbuildable
    found += _jobs(scenario, trust)
    found += [*_warmup(scenario, trust), *_first_timeouts(scenario, trust)]
    jobs = jobs_of(scenario, built, system)
    known = Known(scenario, built, jobs, system, trust, reader.comparison)
    found += [*_of_graph(known), *faults.problems(known), *expected_names.unknown_names(known)]
    for path, what, allowed in found:
        reader.problem(reader.place(path), path, what, allowed)
    return built


def _keys(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields problems of the keys that concern the whole network."""
    if trust("switch.target", "backend"):
        yield from _target(scenario)
    if trust("links.mtu"):
        yield from _queues(scenario)


def _abilities(scenario: Scenario, reader: Reader) -> Iterator[Finding]:
    """Yields what the system does not support, and the given keys that it does not read."""
    system, trust = reader.system, reader.trust()
    able = system.abilities
    wanted = [("backend", scenario.backend, able.clocks)]
    if scenario.backend != "virtual":  # which has one target, whatever the system
        wanted.append(("switch.target", scenario.switch.target, able.targets))
    sections = [("workload", scenario.workload)]
    sections += [(f"jobs[{i}].workload", job.workload) for i, job in enumerate(scenario.jobs)]
    for path, workload in sections:
        wanted.append((f"{path}.kind", workload.kind, workloads.done_with(able.workloads)))
        wanted.append((f"{path}.dtype", workload.dtype, able.dtypes))
        asked = workloads.KINDS[workload.kind]
        if workload.dtype not in asked.dtypes and trust(f"{path}.kind", f"{path}.dtype"):
            what = f"{workload.kind} has no {workload.dtype}"
            yield f"{path}.dtype", what, ", ".join(asked.dtypes)
    for path, value, allowed in wanted:
        if value not in allowed and trust(path):
            yield path, f"{system.name} does not support {value}", ", ".join(allowed)
    for path, workload in sections:
        yield from _keys_of_kind(path, workload, reader)
        clocks = workloads.KINDS[workload.kind].clocks
        if scenario.backend not in clocks and trust(f"{path}.kind", "backend"):
            what = (
                f"{workload.kind} runs a program of the user's own, which cannot run in virtual "
                "time"
            )
            yield f"{path}.kind", what, f"backend: {' or '.join(clocks)}"
    for path in SHARED_KEYS:
        for given in _places(path, len(scenario.jobs)) if path not in able.keys else ():
            if reader.given(given):
                yield given, f"has no meaning for {system.name}", "remove this key"


def _keys_of_kind(path: str, workload: Workload, reader: Reader) -> Iterator[Finding]:
    """Yields the given keys of a workload that only other kinds of workload have."""
    if not reader.trust()(f"{path}.kind"):
        return
    for name in workloads.KINDS[workload.kind].unread:
        if reader.given(f"{path}.{name}"):
            yield f"{path}.{name}", f"has no meaning for {workload.kind}", "remove this key"
    own = workloads.KINDS[workload.kind].keys
    for item in fields(workload):
        if item.name not in workloads.OWN_KEYS or item.name in own:
            continue
        if getattr(workload, item.name) != default_of(item):
            kinds = " or ".join(workloads.having(item.name))
            what = f"has no meaning for {workload.kind}"
            yield f"{path}.{yaml_name(item)}", what, f"kind: {kinds}"


def _places(path: str, jobs: int) -> Iterator[str]:
    """Yields the paths at which a key may be given in a scenario with this many jobs."""
    if path.startswith("jobs[]"):
        yield from (path.replace("[]", f"[{i}]") for i in range(jobs))
        return
    yield path
    if path.startswith("workload."):
        yield from (f"jobs[{i}].{path}" for i in range(jobs))


def own_program(
    scenario: Scenario, sources: Mapping[str, Source], scenario_folder: Path
) -> tuple[Path | None, tuple[str, str] | None]:
    """Returns the P4 source that replaces the system's only program, if the scenario names one. If
    it cannot be used, returns None, and a pair of texts: what is wrong and what is allowed."""
    own = scenario.switch.program
    if own is None:
        return None, None
    if len(sources) > 1:
        roles = " and ".join(sources)
        return None, (
            f"the switches of this system run several programs ({roles}), and one cannot replace "
            "them all",
            "no program",
        )
    path = find_program(own, scenario_folder)
    return path, None if path else program_problem(own, scenario_folder)


def find_program(program: str, scenario_folder: Path) -> Path | None:
    """Returns the .p4 file that `switch.program` means, or None."""
    candidates = [P4_FOLDER / f"{program}.p4"] if "/" not in program else []
    candidates += [scenario_folder / program, Path(program)]
    return next((path.resolve() for path in candidates if os.path.isfile(path)), None)


def program_problem(program: str, scenario_folder: Path) -> tuple[str, str]:
    """Returns what is wrong with a program that was not found, and what is allowed."""
    known = sorted(path.stem for path in P4_FOLDER.glob("*.p4"))
    near = nearest(program, known) or nearest_file(program, (scenario_folder, Path()), "*.p4")
    return (
        f"unknown program '{program}'{near}",
        f"{', '.join(known)} (from p4/), or the path of a .p4 file",
    )


def _target(scenario: Scenario) -> Iterator[Finding]:
    if scenario.backend == "virtual" and scenario.switch.target != "native":
        what = f"{scenario.switch.target} does not run in virtual time"
        yield "switch.target", what, "native, or backend: mininet"


def _bridge(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields the keys that need a P4 program, if the target is `bridge`, which runs none."""
    if scenario.switch.target != "bridge" or not trust("switch.target"):
        return
    switch = scenario.switch
    names = ("program", "entries", "pcap", "registers")
    asked = {name: getattr(switch, name) for name in names}
    for name, value in asked.items():
        if value and trust(f"switch.{name}"):
            what = "a bridge runs no P4 program"
            yield f"switch.{name}", what, "remove this key, or use target: native"
    for i, fault in enumerate(scenario.faults):
        if fault.kind == "attack" and trust(f"faults[{i}]"):
            what = "a bridge also forwards frames with a forged source address"
            yield f"faults[{i}].kind", what, "a target that runs a P4 program, which refuses them"


def _queues(scenario: Scenario) -> Iterator[Finding]:
    """Yields queues that are smaller than a frame of the MTU. Such a frame could never be sent
    through them."""
    frame_bytes = scenario.links.mtu_bytes + ETHERNET_BYTES
    stated = [("links.queue", scenario.links.queue_bytes)]
    for i, override in enumerate(scenario.links.overrides):
        stated.append((f"links.overrides[{i}].queue", override.queue_bytes))
    for path, queue_bytes in stated:
        if queue_bytes is not None and queue_bytes < frame_bytes:
            what = f"{queue_bytes} bytes are too few for one frame of {frame_bytes} bytes"
            yield (
                path,
                what,
                (f"at least {frame_bytes}B, because the MTU is {scenario.links.mtu_bytes}"),
            )


def _shape_keys(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields keys that this kind of topology does not have."""
    shape = scenario.topology
    for name in SHAPE_KEYS if trust("topology.kind") else ():
        default = getattr(type(shape)(), name)
        if getattr(shape, name) != default and name not in OF_KIND[shape.kind]:
            allowed = OF_KIND[shape.kind]
            what = f"has no meaning for {shape.kind}{nearest(name, allowed)}"
            yield f"topology.{name}", what, ", ".join(allowed)


def _built(scenario: Scenario, trust: Trust) -> tuple[Topology | None, list[Finding]]:
    """Returns the graph, if all its keys were read without error, and what is wrong with it. A
    number that could not be read has its default, which is always possible. Nodes and cables have
    no such default, so all of them must have been read."""
    lists = ("topology.switches", "topology.links", "topology.file")
    if not trust("topology.kind") or not all(trust.whole(path) for path in lists):
        return None, []
    try:
        built = graph.bare(scenario.topology)
    except ValueError as error:
        return None, [("topology", str(error), "docs/scenarios.md, Topologies")]
    if not built.hosts:
        return None, [("topology", "has no hosts", "at least one")]
    most = VIRTUAL_HOSTS_MAX if scenario.backend == "virtual" else REAL_HOSTS_MAX
    if len(built.hosts) > most and trust("backend"):
        what = f"{len(built.hosts)} hosts are more than the backend {scenario.backend} can have"
        return None, [("topology", what, f"at most {most}")]
    return built if trust.whole("topology") else None, []


def _first_timeouts(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields first timeouts that end only when workers have given up."""
    for path, own in stated_workloads(scenario):
        first_s, give_up_s = own.first_timeout_s, own.give_up_s
        keys = [f"{at}.{key}" for at in (path, "workload") for key in ("first_timeout", "give_up")]
        if first_s is not None and first_s >= give_up_s and trust(*keys):
            what = f"workers give up after {give_up_s:g} s, before they send a packet again"
            yield f"{path}.first_timeout", what, "a shorter time than give_up"


def _warmup(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields a problem if warming up leaves no round to measure."""
    for path, own in stated_workloads(scenario):
        if own.warmup >= own.rounds and trust(
            f"{path}.warmup", f"{path}.rounds", "workload.warmup", "workload.rounds"
        ):
            what = (
                f"of {own.rounds} rounds, {own.warmup} are for warming up, so none is left to "
                "measure"
            )
            yield f"{path}.warmup", what, f"0 to {own.rounds - 1}"


def _jobs(scenario: Scenario, trust: Trust) -> Iterator[Finding]:
    """Yields problems of jobs that can be found without building the network."""
    if not trust("jobs"):
        return
    if len(scenario.jobs) > MAX_JOBS:
        yield "jobs", f"{len(scenario.jobs)} jobs are too many", f"at most {MAX_JOBS}"
    names: set[str] = set()
    for i, job in enumerate(scenario.jobs):
        if job.name and job.name in names:
            yield (
                f"jobs[{i}].name",
                f"'{job.name}' is already the name of another job",
                "a different name for each job",
            )
        names.add(job.name)
        times_known = trust(f"jobs[{i}].start", f"jobs[{i}].end")
        if times_known and job.end_s is not None and job.end_s <= job.start_s:
            yield f"jobs[{i}].end", "is not later than 'start'", "a later time"


def _of_graph(known: Known) -> Iterator[Finding]:
    """Yields problems that depend on the network's names and the jobs' hosts."""
    if known.graph is None:
        return
    yield from _overrides(known.scenario, known.graph, known.trust)
    yield from _servers(known, known.graph)
    reasons = set()
    for i, job in enumerate(known.jobs):
        if not job.hosts and known.trust.whole(f"jobs[{i}].workers"):
            yield _nobody(known, known.graph, i)
        if not known.hosts_known(job):
            continue
        yield from _tensors(known, i, job)
        whole = ActiveJob(job, i, tuple(range(len(job.hosts))))
        reason = known.system.refused(known.graph, whole)
        if reason and reason.partition(": ")[2] not in reasons:
            reasons.add(reason.partition(": ")[2])
            yield "topology", reason, "docs/scenarios.md, Topologies"


def _servers(known: Known, graph: Topology) -> Iterator[Finding]:
    """Yields the patterns of servers that match no host, because otherwise other hosts would become
    servers."""
    path, names = f"{known.system.name}.servers", [host.name for host in graph.hosts]
    for pattern in known.system.server_patterns(known.scenario):
        if known.trust(path) and not any(fnmatchcase(name, pattern) for name in names):
            what = f"'{pattern}' matches no host{nearest(pattern, names)}"
            yield path, what, f"{', '.join(names)}, or patterns of them"


def _nobody(known: Known, graph: Topology, i: int) -> Finding:
    """Returns the problem of job `i` if it has no workers: either no host matches its patterns, or
    the hosts that match are reserved for servers."""
    serving = known.system.reserved_hosts(known.scenario, graph)
    names = [host.name for host in graph.hosts if host.name not in serving]
    if not names:
        path = f"{known.system.name}.servers"
        return path, "leaves no host for workers", "fewer hosts"
    patterns = known.scenario.jobs[i].workers if known.scenario.jobs else ("*",)
    served = [name for name in serving if any(fnmatchcase(name, each) for each in patterns)]
    but = f" but servers ({', '.join(served)})" if served else nearest(", ".join(patterns), names)
    return f"jobs[{i}].workers", f"match no host{but}", f"{', '.join(names)}, or patterns of them"


def _tensors(known: Known, i: int, job: Job) -> Iterator[Finding]:
    key = {Layers: "scale", Sgd: "steps"}.get(type(job.work), "elements")
    path = f"jobs[{i}].workload.{key}" if known.scenario.jobs else f"workload.{key}"
    workers = len(job.hosts)
    needed = workers * tensor_bytes(known.system, known.scenario, job)
    if needed > TENSORS_MAX_BYTES and known.workload_known(job, key):
        most = TENSORS_MAX_BYTES // (wire.VALUE_BYTES * workers)
        what = f"the tensors of {workers} workers need more than 8 GiB of memory"
        unit = " values" if key == "scale" else ""
        yield path, what, f"at most {most}{unit} with this number of workers"


def _overrides(scenario: Scenario, built: Topology, trust: Trust) -> Iterator[Finding]:
    ways = [(link.name, way) for link in built.links for way, _, _, _ in link.directions()]
    for i, override in enumerate(scenario.links.overrides):
        path = f"links.overrides[{i}].match"
        if trust(path) and not any(matches(override.match, link, way) for link, way in ways):
            names = [link.name for link in built.links]
            what = f"'{override.match}' matches no link{nearest(override.match, names)}"
            yield path, what, f"{', '.join(names)}, or a pattern of them"
