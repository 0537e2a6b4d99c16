"""Turns the entries of `faults:` into values of the class Fault. It finds what is wrong with the
entries, and what each of them matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fnmatch import fnmatchcase

from agglab.hosts.part import SERVER, WORKER
from agglab.testbed.base.problems import nearest
from agglab.testbed.scenario.known import Known
from agglab.testbed.scenario.links import doubled, is_constant, matches
from agglab.testbed.schema import faults
from agglab.testbed.schema.fault_kinds import (
    KINDS,
    ChunkMark,
    FaultEntry,
    FaultTarget,
    duration_s,
)
from agglab.testbed.schema.jobs import Finding, Job
from agglab.testbed.schema.key import yaml_name
from agglab.testbed.schema.scenario import Scenario
from agglab.topologies import Topology


def expand(scenario: Scenario, graph: Topology, jobs: Sequence[Job]) -> list[faults.Fault]:
    """Returns every fault of a checked scenario, in the scenario's order and numbered from 0. An
    entry becomes one fault for each of its targets."""
    found = (
        (action, entry)
        for entry in scenario.faults
        for action in _actions(entry, graph, jobs)
        if not is_constant(entry)
    )
    return [
        faults.Fault(number, entry.kind, action, _trigger(entry, jobs), duration_s(entry))
        for number, (action, entry) in enumerate(found)
    ]


def at_once(
    entry: FaultEntry, graph: Topology, jobs: Sequence[Job], first: int
) -> list[faults.Fault]:
    """Returns the faults of an entry without a time, which begin at once: one for each of its
    targets, numbered from `first`. Raises ValueError with one line if it has no target."""
    actions = list(_actions(entry, graph, jobs))
    if not actions:
        target = KINDS[entry.kind].target
        pattern, names = getattr(entry, target), _targets(target, graph, jobs)
        hint = f"{nearest(pattern, names)}; allowed: {', '.join(names)}"
        raise ValueError(f"'{pattern}' matches no {target}{hint}")
    return [
        faults.Fault(number, entry.kind, action, faults.AtOnce(), duration_s(entry))
        for number, action in enumerate(actions, first)
    ]


def problems(known: Known) -> Iterator[Finding]:
    """Yields everything that is wrong with the entries and with `pause_at`, each with the path of
    its key."""
    if known.scenario.pause_at is not None:
        yield from _mark_problems(known.scenario.pause_at, known, "pause_at")
    sound = []
    for i, entry in enumerate(known.scenario.faults):
        path = f"faults[{i}]"
        found = [*_entry_problems(entry, known, path), *_time_problems(entry, known, path)]
        yield from found
        if not found and known.trust.whole(path):
            sound.append((i, entry))
    if known.graph is not None:
        yield from _overlaps(sound, known.graph, known.jobs_with_hosts)
        judged = {i for i, _ in sound}
        yield from doubled(known.scenario, known.graph, known.trust, judged)


def _entry_problems(entry: FaultEntry, known: Known, path: str) -> Iterator[Finding]:
    if not known.trust(f"{path}.kind"):
        return
    kind = KINDS[entry.kind]
    if entry.kind == "attack" and not known.system.attack_kinds:
        yield f"{path}.kind", f"{known.system.name} defines no frames for an attack", "another kind"
    if kind.target == SERVER and not known.system.abilities.has_servers:
        yield f"{path}.kind", f"{known.system.name} has no servers", "another kind"
        return
    given = _given(entry)
    for name in sorted(given - set(kind.keys)):
        what = f"has no meaning for {entry.kind}{nearest(name, kind.keys)}"
        yield f"{path}.{name}", what, ", ".join(kind.keys)
    for name in (kind.target, *kind.needs):
        if name not in given and known.trust(f"{path}.{name}"):
            yield path, f"{entry.kind} needs '{name}'", ", ".join(kind.keys)
    if entry.every is not None and (entry.count or 1) > entry.every:
        yield (
            f"{path}.count",
            f"{entry.count} is more than `every`, which is {entry.every}",
            "at most `every`",
        )
    if entry.job is not None and _is_unknown_job(entry.job, known):
        yield f"{path}.job", *_no_such_job(entry.job, known.jobs)
    elif kind.target in given and known.graph is not None and _matches_nothing(entry, known, path):
        pattern = getattr(entry, kind.target)
        names = _targets(kind.target, known.graph, known.jobs)
        if any(fnmatchcase(name, pattern) for name in names) and entry.kind == "attack":
            what = f"'{pattern}' takes part in every job, so it cannot attack one from outside"
            yield f"{path}.host", what, "a host that does not take part in at least one job"
            return
        what = f"'{pattern}' matches no {kind.target}{nearest(pattern, names)}"
        yield f"{path}.{kind.target}", what, f"{', '.join(names)}, or a pattern of them"


def _is_unknown_job(name: str, known: Known) -> bool:
    return known.job_names_known and name not in {job.name for job in known.jobs}


def _matches_nothing(entry: FaultEntry, known: Known, path: str) -> bool:
    """Returns whether the entry's target certainly does not exist. If hosts or names of jobs are
    not known, any host may be the target."""
    assert known.graph is not None
    target = KINDS[entry.kind].target
    if target in (WORKER, SERVER):
        entry = replace(entry, job=entry.job if known.trust(f"{path}.job") else None)
    hosts_known = known.all_hosts_known and known.job_names_known
    if target == SERVER:  # whose hosts follow from the system's own keys, too
        hosts_known = hosts_known and known.trust.whole(known.system.name)
    if target in (WORKER, SERVER, "host") and not hosts_known:
        pattern = getattr(entry, target)
        return not any(fnmatchcase(host.name, pattern) for host in known.graph.hosts)
    return next(_places(entry, known.graph, known.jobs), None) is None


def _no_such_job(name: str | None, jobs: Sequence[Job]) -> tuple[str, str]:
    known = [job.name for job in jobs]
    return f"no such job '{name}'{nearest(name or '', known)}", ", ".join(known)


def _time_problems(entry: FaultEntry, known: Known, path: str) -> Iterator[Finding]:
    if entry.at_s is not None and entry.at_chunk is not None:
        yield (
            f"{path}.at_chunk",
            "'at' already says when the fault begins",
            "either `at` or `at_chunk`",
        )
    if entry.for_s is not None and entry.until_s is not None:
        yield (
            f"{path}.until",
            "'for' already says how long the fault lasts",
            "either `for` or `until`",
        )
    if entry.until_s is not None and entry.at_chunk is not None:
        yield (
            f"{path}.until",
            ("cannot be used with 'at_chunk', whose time is not known in advance"),
            "'for'",
        )
    elif entry.until_s is not None and entry.until_s <= (entry.at_s or 0):
        yield f"{path}.until", "is not later than 'at'", "a later time"
    if entry.at_s is not None:
        yield from _too_late(entry.at_s, known, f"{path}.at")
    if entry.at_chunk is not None:
        yield from _mark_problems(entry.at_chunk, known, f"{path}.at_chunk")


def _too_late(at_s: float, known: Known, path: str) -> Iterator[Finding]:
    """Yields a problem if a fault begins when the run is certainly over."""
    jobs, trust = known.jobs, known.trust
    numbers = range(len(known.scenario.jobs))
    ends_known = trust("jobs", *(f"jobs[{i}].end" for i in numbers))
    ends = [job.end_s for job in jobs]
    last_s = max((end for end in ends if end is not None), default=0.0)
    if ends_known and None not in ends and at_s > last_s:
        yield path, f"is later than the end of every job, at {last_s:g} s", "an earlier time"
        return
    lengths_known = (
        trust("jobs", "timeouts.round", *(f"jobs[{i}].start" for i in numbers))
        and all(known.workload_known(job, "rounds") for job in jobs)
    )  # fmt: skip
    if lengths_known and at_s > (latest := latest_end_s(known.scenario, jobs)):
        yield path, f"is later than the run can end, at {latest:g} s", "an earlier time"


def latest_end_s(scenario: Scenario, jobs: Sequence[Job]) -> float:
    """Returns the time, in seconds, at which the last job has ended at the latest, because of its
    timeouts."""
    if scenario.timeouts.round_s is None:
        return float("inf")
    return max(job.start_s + job.rounds * scenario.timeouts.round_s for job in jobs)


def _mark_problems(mark: ChunkMark, known: Known, path: str) -> Iterator[Finding]:
    scenario, jobs, trust = known.scenario, known.jobs, known.trust
    if not trust("jobs", f"{path}.job"):
        return
    job = next((job for job in jobs if mark.job in (None, job.name)), None)
    if job is None:
        if known.job_names_known:
            yield f"{path}.job", *_no_such_job(mark.job, jobs)
        return
    if mark.round >= job.rounds and known.workload_known(job, "rounds"):
        what = f"is too large: {job.name} has only {job.rounds} rounds"
        yield f"{path}.round", what, f"0 to {job.rounds - 1}"
    if not (trust("switch.lanes", "links.mtu") and known.workload_known(job, "elements")):
        return
    chunks = known.system.round_chunks(scenario, job)
    if mark.chunk >= chunks:
        what = f"is too large: a round of {job.name} has only {chunks} chunks"
        yield f"{path}.chunk", what, f"0 to {chunks - 1}"


Numbered = Sequence[tuple[int, FaultEntry]]
Span = tuple[float, float, int]
"""The begin and end of a fault, in seconds, and the number of its entry."""


def _overlaps(entries: Numbered, graph: Topology, jobs: Sequence[Job]) -> Iterator[Finding]:
    """Yields faults that begin on a target before another fault with the same claim (see
    faults.Claim) has ended there."""
    spans: dict[faults.Claim, list[Span]] = {}
    for i, entry in entries:
        if entry.at_chunk is not None or is_constant(entry):
            continue
        start = entry.at_s or 0.0
        seconds = duration_s(entry)
        end = start + (KINDS[entry.kind].endless_s if seconds is None else seconds)
        actions = list(_actions(entry, graph, jobs))
        if clash := next(_clashes(spans, actions, start, end), None):
            other, where = clash
            what = f"begins before faults[{other}] has ended on the same {where}"
            yield f"faults[{i}].at", what, "periods that do not overlap"
        for action in actions:
            spans.setdefault(action.claim, []).append((start, end, i))


def _clashes(
    spans: Mapping[faults.Claim, Sequence[Span]],
    actions: Sequence[faults.Action],
    start: float,
    end: float,
) -> Iterator[tuple[int, str]]:
    """Yields each entry whose fault overlaps with these actions, and the target that both have."""
    for action in actions:
        for other_start, other_end, other in spans.get(action.claim, []):
            if (start < other_end and other_start < end) or start == other_start:
                yield other, action.target


def _places(entry: FaultEntry, graph: Topology, jobs: Sequence[Job]) -> Iterator[FaultTarget]:
    """Yields everything that the entry's target matches."""
    target = KINDS[entry.kind].target
    pattern = getattr(entry, target) or ""
    if target == "link":
        for link in graph.links:
            ways = tuple(way for way, *_ in link.directions() if matches(pattern, link.name, way))
            if ways:
                yield FaultTarget(link=link.name, directions=ways)
    elif target in (WORKER, SERVER):
        for job in (job for job in jobs if entry.job in (None, job.name)):
            for host in _matching(_hosts(job, target), pattern):
                yield FaultTarget(job=job.number, host=host)
    elif target == "host":
        names = [host.name for host in graph.hosts if _belongs_to_no_job(host.name, jobs)]
        yield from (FaultTarget(host=name) for name in _matching(names, pattern))
    else:
        names = [switch.name for switch in graph.switches]
        yield from (FaultTarget(switch=name) for name in _matching(names, pattern))


def _matching(names: Sequence[str], pattern: str) -> list[str]:
    return [name for name in names if fnmatchcase(name, pattern)]


def _hosts(job: Job, role: str) -> Sequence[str]:
    return job.hosts if role == WORKER else job.servers


def _actions(entry: FaultEntry, graph: Topology, jobs: Sequence[Job]) -> Iterator[faults.Action]:
    for where in _places(entry, graph, jobs):
        yield KINDS[entry.kind].act(entry, where)


def _belongs_to_no_job(host: str, jobs: Sequence[Job]) -> bool:
    """Returns whether there is a job to which the host does not belong, so that the host can attack
    it."""
    return any(host not in job.hosts for job in jobs)


def _trigger(entry: FaultEntry, jobs: Sequence[Job]) -> faults.Trigger:
    if entry.at_chunk is None:
        return faults.AtTime(entry.at_s or 0.0)
    return at_chunk(entry.at_chunk, jobs)


def at_chunk(mark: ChunkMark, jobs: Sequence[Job]) -> faults.AtChunk:
    """Returns the moment that a mark of a checked scenario names."""
    job = next(job for job in jobs if mark.job in (None, job.name))
    return faults.AtChunk(job.number, mark.round, mark.chunk)


def _targets(target: str, graph: Topology, jobs: Sequence[Job]) -> list[str]:
    if target == "link":
        return [link.name for link in graph.links]
    if target == SERVER and any(job.servers for job in jobs):
        return list(dict.fromkeys(host for job in jobs for host in job.servers))
    if target in (WORKER, SERVER, "host"):
        return [host.name for host in graph.hosts]
    return [switch.name for switch in graph.switches]


def _given(entry: FaultEntry) -> set[str]:
    return {
        yaml_name(item)
        for item in fields(entry)
        if item.name == "kind" or getattr(entry, item.name) != item.default
    }
