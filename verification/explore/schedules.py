"""Random small scenarios: a topology, one or two jobs, and a few faults, all drawn from one
seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from agglab.hosts.part import SERVER, WORKER
from agglab.hosts.tensors import OVERLAPS
from agglab.hosts.workloads.calls import APPLICATIONS
from agglab.testbed import systems
from agglab.testbed.scenario.graph import bare as bare_graph
from agglab.testbed.scenario.job_list import jobs_of
from agglab.testbed.schema.fault_kinds import ChunkMark, FaultEntry
from agglab.testbed.schema.network_sections import Links, Switch
from agglab.testbed.schema.network_sections import Topology as Shape
from agglab.testbed.schema.scenario import JobSection, Scenario, Timeouts
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.base import System
from agglab.topologies import Topology
from agglab.verification import proofs

# Few and fixed, so that one compiled program serves all schedules.
LANES, SLOTS = 4, 8
GIVE_UP_S = 60.0
ROUND_S = 600.0
FAULTS_MAX, SERVER_FAULTS_MAX = 4, 2

Maker = Callable[[Random, Topology], FaultEntry]

SHAPES = (
    lambda chance: Shape("rack", chance.randint(2, 4)),
    lambda chance: Shape("two_tier", chance.randint(1, 2), racks=chance.randint(2, 3)),
    lambda chance: Shape("leaf_spine", chance.randint(1, 2), racks=2, spines=2),
    lambda chance: Shape("ring_of_racks", 1, racks=3),
)
STOPS = ("_pause", "_crash", "_restart", "_reprogram")
"""The endings of the names of faults that stop a program."""
PROBABILITIES = (0.01, 0.05, 0.1, 0.2)
TIMES_S = (0.0005, 0.002, 0.005, 0.02, 0.05, 0.15, 0.4)
LASTING_S = (0.001, 0.01, 0.05, 0.2, 0.8)


def schedule(seed: int, system: str) -> Scenario:
    """Returns the scenario of a seed, with all values chosen. For one seed, the network, jobs and
    faults are the same for every system. Systems with servers have additional faults of servers."""
    chance, tensors = Random(seed), Random(f"tensors {seed}")
    found = systems.find(system)
    shape = chance.choice(SHAPES)(chance)
    jobs = chance.choice((1, 1, 1, 2))
    bare = Scenario(
        name=f"explore-{seed}",
        description="a schedule that explore made",
        seed=seed,
        backend="virtual",
        system=system,
        options=own_options(seed, system, jobs),
        topology=shape,
        links=Links(
            rate_bps=chance.choice((1_000_000, 10_000_000, 100_000_000)),
            delay_s=chance.choice((0.0, 0.0001, 0.005)),
            loss=chance.choice((0.0, 0.0, 0.02, 0.1)),
        ),
        switch=Switch(lanes=LANES, slots=SLOTS),
        workload=_workload(chance, tensors, found),
        timeouts=Timeouts(round_s=ROUND_S),
    )
    if jobs > 1:
        own = tuple(
            JobSection(name=f"job{n + 1}", workload=_workload(chance, tensors, found))
            for n in range(jobs)
        )
        bare = replace(bare, jobs=own)
    faults = list(_faults(chance, bare, MAKERS, FAULTS_MAX))
    if found.abilities.has_servers:
        servers = Random(f"servers {seed}")
        faults += _faults(servers, bare, SERVER_MAKERS, SERVER_FAULTS_MAX)
    return replace(bare, faults=tuple(faults))


def own_options(seed: int, system: str, jobs: int) -> tuple[tuple[str, Any], ...]:
    """Draws values for the keys that only this system has, in a scenario with this number of jobs.
    Returns Scenario.options."""
    draw, usual = proofs.of(system).options, systems.find(system).options
    if usual is None:
        return ()
    return ((system, draw(Random(f"options {seed}"), jobs) if draw else usual()),)


def _workload(chance: Random, tensors: Random, system: System) -> Workload:
    """Draws a workload. tensors: the random numbers for the properties of the tensors, which are
    independent of `chance`."""
    able = system.abilities.workloads
    reduces = "allreduce" in able
    others = [kind for kind in able if kind in OWN_KEYS]
    assert reduces or others, f"explore knows how to draw none of {', '.join(able)}"
    keys = _sparse(tensors)
    if others and (not reduces or tensors.random() < 0.5):
        kind = tensors.choice(others)
        keys = {"kind": kind, **OWN_KEYS[kind](tensors)}
    return Workload(
        **keys,
        elements=chance.randint(1, 14 * LANES),
        dtype=chance.choice(("int32", "float32")),
        rounds=chance.randint(1, 3),
        window=_window(chance, system),
        give_up_s=GIVE_UP_S,
        on_failure=chance.choice(("fail", "restart", "survivors")),
    )


def _window(chance: Random, system: System) -> int | None:
    drawn = chance.randint(1, SLOTS // 2)
    return drawn if "workload.window" in system.abilities.keys else None


def _sparse(chance: Random) -> dict[str, Any]:
    """Draws the keys of a sparse workload in half of all cases, and no keys in the others."""
    keys = {
        "kind": "sparse_allreduce",
        "density": chance.choice((0.0, 0.1, 0.3, 0.6)),
        "block": chance.choice((1, 3, LANES, 2 * LANES)),
        "overlap": chance.choice(OVERLAPS),
    }
    return keys if chance.random() < 0.5 else {}


def _push_pull(chance: Random) -> dict[str, Any]:
    """Draws the keys of a push-and-pull workload. The vocabulary is either so small that every
    worker uses all of its keys, or larger than any worker's number of keys. In half of the cases,
    the popular keys change after each one or two rounds."""
    return {
        "vocabulary": chance.choice((3, 12, 40, 200)),
        "exponent": chance.choice((0.0, 0.8, 1.3)),
        "drift": chance.choice((0, 0, 1, 2)),
    }


def _async_sgd(chance: Random) -> dict[str, Any]:
    """Draws a short asynchronous training run of a model that fits into few packets. Each update,
    and each reading of the model, takes as many packets as the model."""
    return {
        "features": chance.randint(2, 8),
        "classes": chance.randint(2, 3),
        "samples": chance.randint(1, 8),
        "batch": chance.randint(1, 2),
        "learning_rate": chance.choice((0.01, 0.1, 0.5)),
        "compute_s": chance.choice((0.00001, 0.0005, 0.005)),
        "updates": chance.randint(1, 10),
        "time_s": chance.choice((None, None, 0.02)),
    }


OWN_KEYS: Mapping[str, Callable[[Random], dict[str, Any]]] = {
    "push_pull": _push_pull,
    "calls": lambda chance: {"application": chance.choice(APPLICATIONS)},
    "async_sgd": _async_sgd,
}
"""Functions that draw the keys of workloads other than all-reduces, by kind."""


def _faults(
    chance: Random, scenario: Scenario, makers: Mapping[str, Maker], most: int
) -> Iterator[FaultEntry]:
    """Draws faults that do not overlap: at most one fault of each kind for a target, and at most
    one that stops the target's program."""
    graph, used = bare_graph(scenario.topology), set()
    jobs = jobs_of(scenario, graph, systems.find(scenario.system))
    servers = list(dict.fromkeys(host for job in jobs for host in job.servers))
    hosts = [host.name for host in graph.hosts]
    for _ in range(chance.randint(0, most)):
        kind = chance.choice(list(makers))
        entry = makers[kind](chance, graph)
        if entry.server is not None:
            if not servers:
                continue
            entry = replace(entry, server=servers[hosts.index(entry.server) % len(servers)])
        what = "stops" if kind.endswith(STOPS) else kind
        where = (what, entry.link, entry.worker, entry.server, entry.switch)
        if where not in used:
            used.add(where)
            yield _at(chance, replace(entry, kind=kind), scenario)


def _at(chance: Random, entry: FaultEntry, scenario: Scenario) -> FaultEntry:
    if chance.random() < 0.5:
        return replace(entry, at_s=chance.choice(TIMES_S))
    job = chance.choice(scenario.jobs) if scenario.jobs else None
    workload = job.workload if job else scenario.workload
    number, chunk = (
        chance.randrange(workload.rounds),
        chance.randrange(-(-workload.elements // LANES)),
    )
    mark = ChunkMark(job.name if job else None, number, chunk % _chunks(scenario, job))
    return replace(entry, at_chunk=mark)


def _chunks(scenario: Scenario, section: JobSection | None) -> int:
    """Returns how many chunks a round of the job has in the scenario's system, at least 1."""
    system, graph = systems.find(scenario.system), bare_graph(scenario.topology)
    jobs = jobs_of(scenario, graph, system)
    job = jobs[scenario.jobs.index(section)] if section else jobs[0]
    return max(1, system.round_chunks(scenario, job))


def _link(chance: Random, graph: Topology) -> str:
    """Draws a link, or one of its directions."""
    link = chance.choice(graph.links)
    return chance.choice([link.name, *(name for name, _, _, _ in link.directions())])


def _lasting(chance: Random) -> float | None:
    """Draws how long a fault lasts. It rarely lasts for ever."""
    return None if chance.random() < 0.1 else chance.choice(LASTING_S)


def _impairment(**given: object) -> Maker:
    def make(chance: Random, graph: Topology) -> FaultEntry:
        values = {k: chance.choice(v) if isinstance(v, tuple) else v for k, v in given.items()}
        return FaultEntry(link=_link(chance, graph), for_s=_lasting(chance), **values)  # type: ignore[arg-type]

    return make


def _periodic(chance: Random, graph: Topology) -> FaultEntry:
    """Draws a periodic fault that ends. If it did not end, each of its repetitions could hit the
    same packet. The reason is that workers that wait for the same answer repeat their packets in
    the same order and equally often."""
    entry = _impairment(every=(3, 7, 20), count=1, offset=(0, 2))(chance, graph)
    return replace(entry, for_s=entry.for_s or LASTING_S[-1])


def _drop_list(chance: Random, graph: Topology) -> FaultEntry:
    numbers = tuple(sorted(chance.sample(range(40), chance.randint(1, 6))))
    return FaultEntry(link=_link(chance, graph), packets=numbers)


def _rate(chance: Random, graph: Topology) -> FaultEntry:
    rate_bps = chance.choice((100_000, 2_000_000, 50_000_000))
    return FaultEntry(link=_link(chance, graph), rate_bps=rate_bps, for_s=_lasting(chance))


def _link_down(chance: Random, graph: Topology) -> FaultEntry:
    return FaultEntry(link=chance.choice(graph.links).name, for_s=_lasting(chance))


def _agent(role: str, lasts: bool, slow: bool = False) -> Maker:
    def make(chance: Random, graph: Topology) -> FaultEntry:
        host = chance.choice(graph.hosts).name
        return FaultEntry(
            worker=host if role == WORKER else None,
            server=host if role == SERVER else None,
            for_s=_lasting(chance) if lasts else None,
            delay_s=chance.choice((0.001, 0.02)) if slow else None,
        )

    return make


def _of_agents(role: str) -> dict[str, Maker]:
    return {
        f"{role}_pause": _agent(role, lasts=True),
        f"{role}_crash": _agent(role, lasts=False),
        f"{role}_restart": _agent(role, lasts=True),
        f"{role}_slow": _agent(role, lasts=True, slow=True),
    }


def _switch(lasts: bool) -> Maker:
    def make(chance: Random, graph: Topology) -> FaultEntry:
        return FaultEntry(
            switch=chance.choice(graph.switches).name,
            for_s=chance.choice(LASTING_S) if lasts else None,
        )

    return make


MAKERS: Mapping[str, Maker] = {
    "loss": _impairment(probability=PROBABILITIES),
    "gilbert_elliott": _impairment(to_bad=(0.02, 0.1), to_good=(0.2, 0.5)),
    "periodic": _periodic,
    "drop_list": _drop_list,
    "duplicate": _impairment(probability=PROBABILITIES),
    "reorder": _impairment(probability=PROBABILITIES, delay_s=(0.0003, 0.004, 0.12)),
    "corrupt": _impairment(probability=PROBABILITIES),
    "jitter": _impairment(jitter_s=(0.0002, 0.003, 0.05)),
    "link_down": _link_down,
    "rate": _rate,
    **_of_agents(WORKER),
    "switch_restart": _switch(lasts=True),
    "switch_reprogram": _switch(lasts=False),
}
SERVER_MAKERS: Mapping[str, Maker] = _of_agents(SERVER)
"""Faults of servers, for systems that have servers. By default there is one server on each host."""
