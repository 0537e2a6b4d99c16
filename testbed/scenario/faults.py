"""`faults:` entries to frozen values: which keys each kind has, and what each entry matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from testbed import faults
from testbed.scenario.errors import nearest
from testbed.scenario.jobs import Tenant, chunks_of, lanes_that_fit
from testbed.scenario.schema import ChunkMark, FaultEntry, Scenario, yaml_name
from topologies import Link, Topology
from topologies.graph import (
    Corrupt,
    Drop,
    DropList,
    Duplicate,
    GilbertElliott,
    Impairment,
    Jitter,
    PeriodicDrop,
    Reorder,
)

Finding = tuple[str, str, str]
WHEN = ("at", "at_chunk", "for", "until")
ATTACK_S = 1.0
"""An attack lasts so long if nothing is said."""


@dataclass(frozen=True)
class FaultKind:
    """target: the key that says where. needs, may: keys of its own. lasts: it has an end that can
    be stated. build: the entry -> the impairment, for kinds that are one."""

    target: str
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    lasts: bool = True
    build: Callable[[FaultEntry], Impairment] | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        when = WHEN if self.lasts else WHEN[:2]
        whose = ("job",) if self.target == "worker" else ()
        return ("kind", self.target, *whose, *self.needs, *self.may, *when)


def _microseconds(seconds: float | None) -> int:
    return max(1, round((seconds or 0.0) * 1e6))


def _gilbert_elliott(entry: FaultEntry) -> Impairment:
    return GilbertElliott(
        to_bad=entry.to_bad or 0.0,
        to_good=entry.to_good or 0.0,
        good_loss=entry.good_loss or 0.0,
        bad_loss=1.0 if entry.bad_loss is None else entry.bad_loss,
    )


def _periodic(entry: FaultEntry) -> Impairment:
    return PeriodicDrop(entry.every or 1, entry.count or 1, entry.offset or 0)


def _drop_list(entry: FaultEntry) -> Impairment:
    return DropList(tuple(sorted(set(entry.packets))))


def _reorder(entry: FaultEntry) -> Impairment:
    return Reorder(entry.probability or 0, _microseconds(entry.delay_s))


KINDS: Mapping[str, FaultKind] = {
    "loss": FaultKind("link", ("probability",), build=lambda e: Drop(e.probability or 0)),
    "gilbert_elliott": FaultKind(
        "link", ("to_bad", "to_good"), ("bad_loss", "good_loss"), build=_gilbert_elliott
    ),
    "periodic": FaultKind("link", ("every",), ("count", "offset"), build=_periodic),
    "drop_list": FaultKind("link", ("packets",), build=_drop_list),
    "duplicate": FaultKind("link", ("probability",), build=lambda e: Duplicate(e.probability or 0)),
    "reorder": FaultKind("link", ("probability", "delay"), build=_reorder),
    "corrupt": FaultKind("link", ("probability",), build=lambda e: Corrupt(e.probability or 0)),
    "jitter": FaultKind("link", ("jitter",), build=lambda e: Jitter(_microseconds(e.jitter_s))),
    "link_down": FaultKind("link"),
    "rate": FaultKind("link", ("rate",)),
    "worker_pause": FaultKind("worker"),
    "worker_crash": FaultKind("worker", lasts=False),
    "worker_restart": FaultKind("worker"),
    "worker_slow": FaultKind("worker", ("delay",)),
    "switch_restart": FaultKind("switch"),
    "switch_reprogram": FaultKind("switch", lasts=False),
    "attack": FaultKind("host", ("frames",)),
}


def expand(scenario: Scenario, graph: Topology, jobs: Sequence[Tenant]) -> list[faults.Fault]:
    """Every fault of a checked scenario, one for each target, numbered in the scenario's order."""
    found = (
        (action, entry)
        for entry in scenario.faults
        for action in _actions(entry, graph, jobs)
        if not is_constant(entry)
    )
    return [
        faults.Fault(number, action, _trigger(entry, jobs), _duration_s(entry))
        for number, (action, entry) in enumerate(found)
    ]


def is_constant(entry: FaultEntry) -> bool:
    """An impairment for the whole run: part of its links' Directions and no event."""
    always = not entry.at_s and entry.at_chunk is None and _duration_s(entry) is None
    return KINDS[entry.kind].build is not None and always


def constant_impairments(scenario: Scenario, direction: str, link: str) -> tuple[Impairment, ...]:
    """What the entries without a time do to a direction, in their order."""
    matching = (
        entry
        for entry in scenario.faults
        if is_constant(entry) and _matches(entry.link, link, direction)
    )
    builders = ((KINDS[entry.kind].build, entry) for entry in matching)
    return tuple(build(entry) for build, entry in builders if build)


def problems(scenario: Scenario, graph: Topology, jobs: Sequence[Tenant]) -> Iterator[Finding]:
    """Everything that is wrong with the entries, each with the path of its key."""
    sound = True
    for i, entry in enumerate(scenario.faults):
        wrong = list(_entry_problems(entry, graph, jobs, f"faults[{i}]"))
        sound = sound and not wrong
        yield from wrong or _time_problems(scenario, entry, jobs, f"faults[{i}]")
    if sound:
        yield from _overlaps(scenario, graph, jobs)
        yield from _doubled(scenario, graph)


def _entry_problems(
    entry: FaultEntry, graph: Topology, jobs: Sequence[Tenant], path: str
) -> Iterator[Finding]:
    kind = KINDS[entry.kind]
    for name in _given(entry):
        if name not in kind.keys:
            what = f"has no meaning for {entry.kind}{nearest(name, kind.keys)}"
            yield f"{path}.{name}", what, ", ".join(kind.keys)
    missing = [name for name in (kind.target, *kind.needs) if name not in _given(entry)]
    for name in missing:
        yield path, f"{entry.kind} needs '{name}'", ", ".join(kind.keys)
    if entry.every is not None and (entry.count or 1) > entry.every:
        yield f"{path}.count", f"{entry.count} packets of every {entry.every}", "at most 'every'"
    elif entry.job is not None and entry.job not in {job.name for job in jobs}:
        yield f"{path}.job", *_no_such_job(entry.job, jobs)
    elif not missing and not list(_actions(entry, graph, jobs)):
        pattern, known = getattr(entry, kind.target), _targets(kind.target, graph)
        what = f"'{pattern}' matches no {kind.target}{nearest(pattern, known)}"
        yield f"{path}.{kind.target}", what, f"{', '.join(known)}, or a pattern of them"


def _no_such_job(name: str | None, jobs: Sequence[Tenant]) -> tuple[str, str]:
    known = [job.name for job in jobs]
    return f"no such job '{name}'{nearest(name or '', known)}", ", ".join(known)


def _time_problems(
    scenario: Scenario, entry: FaultEntry, jobs: Sequence[Tenant], path: str
) -> Iterator[Finding]:
    if entry.at_s is not None and entry.at_chunk is not None:
        yield f"{path}.at_chunk", "'at' says when already", "one of the two"
    if entry.for_s is not None and entry.until_s is not None:
        yield f"{path}.until", "'for' says how long already", "one of the two"
    if entry.until_s is not None and entry.at_chunk is not None:
        yield f"{path}.until", "'at_chunk' is at no stated time", "'for'"
    elif entry.until_s is not None and entry.until_s <= (entry.at_s or 0):
        yield f"{path}.until", "is not after 'at'", "a later time"
    ends = [job.end_s for job in jobs]
    last_s = max((end for end in ends if end is not None), default=0.0)
    if None not in ends and (entry.at_s or 0) > last_s:
        yield f"{path}.at", f"is after the end of every job, {last_s:g} s", "an earlier time"
    elif (entry.at_s or 0) > (latest := latest_end_s(scenario, jobs)):
        yield f"{path}.at", f"is after the run, which {latest:g} s end at the latest", "less"
    if entry.at_chunk is not None:
        yield from _mark_problems(scenario, entry.at_chunk, jobs, f"{path}.at_chunk")


def latest_end_s(scenario: Scenario, jobs: Sequence[Tenant]) -> float:
    """When timeouts have ended every job, if nothing else has."""
    if scenario.timeouts.round_s is None:
        return float("inf")
    return max(job.start_s + job.workload.rounds * scenario.timeouts.round_s for job in jobs)


def _mark_problems(
    scenario: Scenario, mark: ChunkMark, jobs: Sequence[Tenant], path: str
) -> Iterator[Finding]:
    job = next((job for job in jobs if mark.job in (None, job.name)), None)
    if job is None:
        yield f"{path}.job", *_no_such_job(mark.job, jobs)
        return
    if mark.round >= job.workload.rounds:
        what = f"is after the end: {job.name} has {job.workload.rounds} rounds"
        yield f"{path}.round", what, f"0 to {job.workload.rounds - 1}"
    lanes = scenario.switch.lanes or lanes_that_fit(scenario.links.mtu_bytes)
    chunks = chunks_of(job, lanes)
    if mark.chunk >= chunks:
        what = f"is after the end: a round of {job.name} has {chunks} chunks"
        yield f"{path}.chunk", what, f"0 to {chunks - 1}"


def _overlaps(scenario: Scenario, graph: Topology, jobs: Sequence[Tenant]) -> Iterator[Finding]:
    """The same thing cannot begin again on one target before it has ended there."""
    spans: dict[Any, list[tuple[float, float, int]]] = {}
    for i, entry in enumerate(scenario.faults):
        if entry.at_chunk is not None or is_constant(entry):
            continue
        start = entry.at_s or 0.0
        end = start + (_duration_s(entry) or float("inf"))
        for action in _actions(entry, graph, jobs):
            key = _what_and_where(action)
            for other_start, other_end, other in spans.get(key, []):
                if start < other_end and other_start < end:
                    what = f"begins before faults[{other}] has ended at the same {key[1]}"
                    yield f"faults[{i}].at", what, "spans that do not overlap"
                    return
            spans.setdefault(key, []).append((start, end, i))


def _doubled(scenario: Scenario, graph: Topology) -> Iterator[Finding]:
    """A direction has at most one impairment of a kind for the whole run."""
    own = scenario.links
    lossy = {"links.loss": own.loss} | {
        f"links.overrides[{i}].loss": each.loss or 0.0 for i, each in enumerate(own.overrides)
    }
    matches = ["*", *(each.match for each in own.overrides)]
    entries = [
        (path, "loss", match)
        for (path, loss), match in zip(lossy.items(), matches, strict=True)
        if loss
    ]
    for i, entry in enumerate(scenario.faults):
        if not is_constant(entry):
            continue
        for path, kind, match in entries:
            if kind == entry.kind and _meet(match, entry.link, graph):
                what = f"{kind} of {entry.link} for the whole run is said by {path} already"
                yield f"faults[{i}]", what, "one of the two"
                return
        entries.append((f"faults[{i}]", entry.kind, entry.link or ""))


def _meet(one: str, other: str | None, graph: Topology) -> bool:
    """Whether two patterns have a direction in common."""
    return any(
        _matches(one, link.name, way) and _matches(other, link.name, way)
        for link in graph.links
        for way, _, _, _ in link.directions()
    )


def _what_and_where(action: faults.Action) -> tuple[Any, ...]:
    """What two faults must not do at once: the same to a link, anything to a worker's program or to
    a switch's."""
    where = {item.name: getattr(action, item.name) for item in fields(action)}
    target = next(where[name] for name in ("link", "host", "switch") if name in where)
    what: Any = type(action)
    if isinstance(action, faults.SwitchRestart | faults.SwitchReprogram):
        what = faults.SwitchFault
    elif isinstance(action, faults.WorkerPause | faults.WorkerCrash):
        what = faults.WorkerCrash
    elif isinstance(action, faults.Impair):
        what = type(action.impairment)
    return what, target, where.get("job"), where.get("directions")


def _actions(entry: FaultEntry, graph: Topology, jobs: Sequence[Tenant]) -> Iterator[faults.Action]:
    target = KINDS[entry.kind].target
    if target == "link":
        for link in graph.links:
            ways = tuple(
                n for n, _, _, _ in link.directions() if _matches(entry.link, link.name, n)
            )
            if ways:
                yield _on_link(entry, link, ways)
    elif target == "worker":
        for job in jobs:
            for host in job.hosts:
                if entry.job in (None, job.name) and fnmatchcase(host, entry.worker or ""):
                    yield _on_worker(entry, job.number, host)
    elif target == "host":
        names = (node.name for node in graph.hosts if _is_stranger(node.name, jobs))
        for name in names:
            if fnmatchcase(name, entry.host or ""):
                duration_s = _duration_s(entry) or ATTACK_S
                yield faults.Attack(name, entry.frames or 0, duration_s)
    else:
        for switch in graph.switches:
            if fnmatchcase(switch.name, entry.switch or ""):
                yield _on_switch(entry, switch.name)


def _is_stranger(host: str, jobs: Sequence[Tenant]) -> bool:
    """Whether there is a job to attack, of which the host is no part."""
    return any(host not in job.hosts for job in jobs)


def _on_link(entry: FaultEntry, link: Link, ways: tuple[str, ...]) -> faults.NetworkFault:
    if entry.kind == "link_down":
        return faults.LinkDown(link.name)
    if entry.kind == "rate":
        return faults.RateChange(link.name, ways, entry.rate_bps or 0)
    build = KINDS[entry.kind].build
    assert build is not None
    return faults.Impair(link.name, ways, build(entry))


def _on_worker(entry: FaultEntry, job: int, host: str) -> faults.WorkerFault:
    if entry.kind == "worker_pause":
        return faults.WorkerPause(job, host)
    if entry.kind == "worker_slow":
        return faults.WorkerSlow(job, host, entry.delay_s or 0.0)
    return faults.WorkerCrash(job, host)


def _on_switch(entry: FaultEntry, switch: str) -> faults.SwitchFault:
    if entry.kind == "switch_reprogram":
        return faults.SwitchReprogram(switch)
    return faults.SwitchRestart(switch, _duration_s(entry) or 0.0)


def _trigger(entry: FaultEntry, jobs: Sequence[Tenant]) -> faults.Trigger:
    mark = entry.at_chunk
    if mark is None:
        return faults.AtTime(entry.at_s or 0.0)
    job = next(job for job in jobs if mark.job in (None, job.name))
    return faults.AtChunk(job.number, mark.round, mark.chunk)


def _duration_s(entry: FaultEntry) -> float | None:
    """Seconds from begin to end. A restart without a time follows at once."""
    if entry.until_s is not None:
        return entry.until_s - (entry.at_s or 0.0)
    if entry.for_s is None and entry.kind == "worker_restart":
        return 0.0
    return entry.for_s


def _matches(pattern: str | None, link: str, direction: str) -> bool:
    """A pattern with '->' is of directions, any other of links and so of both their directions."""
    assert pattern is not None
    return fnmatchcase(direction if "->" in pattern else link, pattern)


def _targets(target: str, graph: Topology) -> list[str]:
    if target == "link":
        return [link.name for link in graph.links]
    if target in ("worker", "host"):
        return [host.name for host in graph.hosts]
    return [switch.name for switch in graph.switches]


def _given(entry: FaultEntry) -> set[str]:
    return {
        yaml_name(item)
        for item in fields(entry)
        if item.name == "kind" or getattr(entry, item.name) != item.default
    }
