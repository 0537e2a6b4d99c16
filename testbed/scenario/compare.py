"""Reads `compare:`, the contenders on one network. Each contender is a complete scenario: its keys
replace those of the scenario's document before the result is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace

from agglab.testbed.base.problems import Problem, Where, twice
from agglab.testbed.scenario.graph import longest_queue, with_links
from agglab.testbed.scenario.metric_names import GROWTH, RATIO
from agglab.testbed.scenario.workloads import FREE_KEYS, OWN_KEYS
from agglab.testbed.schema import document
from agglab.testbed.schema.document import Node, Scalar
from agglab.testbed.schema.jobs import Job
from agglab.testbed.schema.key import JOB_NAME, yaml_name
from agglab.testbed.schema.kinds import InvalidText
from agglab.testbed.schema.scenario import Contender, Scenario
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.base import ResolvedScenario

CONTENDERS_MAX = 16
OF_THE_SCENARIO = ("name", "description", "conformance", "sweep", "compare", "figure")
FIXED = (
    "seed",
    "backend",
    "topology",
    "links",
    "faults",
    "pause_at",
    "jobs",
    "workload.kind",
    *(
        f"workload.{yaml_name(item)}"
        for item in fields(Workload)
        if item.name in OWN_KEYS and item.name not in FREE_KEYS
    ),
    "workload.elements",
    "workload.rounds",
)
"""The keys that must be the same for all contenders, so that a comparison is fair."""
INTEGERS = "int32"
"""The type whose tensors are not those of other types, rounded."""
QUEUE_MAX_BYTES = 1 << 30
"""The largest size that `links.queue` can have."""
FOLDERS = ("logs",)
"""Names of files and folders in every result folder. A contender's folder has the contender's name,
so a contender cannot have one of these names."""
CONTENDERS = "name: {the keys in which this contender differs from the scenario}"


def read(node: Node, path: str, problems: list[Problem]) -> tuple[Contender, ...]:
    """Returns the contenders of the section without the keys that they must not state; problems are
    appended to `problems`."""
    if not isinstance(node, document.Mapping) or not 2 <= len(node.entries) <= CONTENDERS_MAX:
        what = f"needs from 2 to {CONTENDERS_MAX} contenders"
        problems.append(Problem(node.where, path, what, CONTENDERS))
        return ()
    found: dict[str, Contender] = {}
    for name, own in node.entries:
        own_path = f"{path}.{name.text}"
        if wrong := _wrong_name(name, found):
            problems.append(Problem(name.where, own_path, *wrong))
        elif not isinstance(own, document.Mapping):
            problems.append(Problem(own.where, own_path, "is not a mapping", CONTENDERS))
        else:
            problems += _repeated(own, own_path)
            found[name.text] = Contender(name.text, _allowed(own, own_path, problems))
    return tuple(found.values())


def _wrong_name(name: Scalar, found: Mapping[str, Contender]) -> tuple[str, str] | None:
    try:
        JOB_NAME.read(name)
    except InvalidText as error:
        return str(error), JOB_NAME.allowed
    if name.text in found:
        return "is given twice", "each once"
    if name.text in FOLDERS:
        return "is a name that the result folder already uses", "another name"
    return None


def _repeated(node: Node, path: str) -> Iterator[Problem]:
    """Yields the problems of keys that are given twice, because after merging only the last value
    would remain."""
    first: dict[str, Scalar] = {}
    for name, below in node.entries if isinstance(node, document.Mapping) else ():
        own_path = f"{path}.{name.text}"
        if name.text in first:
            yield twice(name.where, own_path, first[name.text].where)
        else:
            first[name.text] = name
            yield from _repeated(below, own_path)


def _allowed(own: Node, path: str, problems: list[Problem]) -> Node:
    """Returns the contender's keys except those that it must not state."""
    for words, what, allowed in _refused(own):
        nodes = document.nodes_at(own, words)
        problems += (Problem(n.where, ".".join((path, *words)), what, allowed) for n in nodes)
        own = document.without(own, words, nodes)
    return own


def _refused(own: Node) -> Iterator[tuple[Sequence[str], str, str]]:
    """Yields for each key that a contender must not state its path, what is wrong with it, and what
    is allowed."""
    for key in OF_THE_SCENARIO:
        yield (key,), "belongs to the whole scenario, not to one contender", "remove it here"
    for key in FIXED:
        what = (
            "must be the same for all contenders, because they share one network and one workload"
        )
        yield key.split("."), what, "state it outside `compare`"
    for expect in document.nodes_at(own, ("expect",)):
        for name, _ in expect.entries if isinstance(expect, document.Mapping) else ():
            if name.text.startswith((RATIO, GROWTH)):
                what = "is about several runs, not about this contender alone"
                yield ("expect", name.text), what, "in the scenario's own `expect`"


def unfair(scenario: Scenario, place: Callable[[str], Where]) -> Iterator[Problem]:
    """Yields the problems of keys that the scenario must not state outside its contenders. place: a
    function that returns where a key is in the file."""
    for i, job in enumerate(scenario.jobs if scenario.compare else ()):
        if job.end_s is not None:
            path, what = (
                f"jobs[{i}].end",
                ("would end the contenders after different numbers of rounds"),
            )
            yield Problem(place(path), path, what, "in a comparison, `workload.rounds` alone")
    for contender in scenario.compare:
        for axis in scenario.sweep:
            for node in document.nodes_at(contender.own, axis.path.split(".")):
                path, what = (
                    f"compare.{contender.name}.{axis.path}",
                    "would override a key that `sweep` sets",
                )
                yield Problem(node.where, path, what, "this key either here or in `sweep`")


def together(found: Mapping[str, Sequence[Problem]]) -> Iterator[Problem]:
    """Yields the problems of all contenders. A problem that every contender has is reported for the
    scenario. The others name their contender."""
    of_all = set.intersection(*(set(problems) for problems in found.values()))
    for name, problems in found.items():
        for problem in problems:
            of_runs = problem.path.startswith((f"expect.{RATIO}", f"expect.{GROWTH}"))
            whole = problem in of_all or of_runs
            yield problem if whole else replace(problem, path=f"compare.{name}.{problem.path}")


def with_equal_queues(runs: Sequence[ResolvedScenario]) -> list[ResolvedScenario]:
    """Returns the contenders' runs with the same queues. The length of a queue whose size is `auto`
    depends on a contender's window. If that makes queues differ, all of them get as many bytes as
    the longest of them needs for its packets, and every contender's scenario states this size."""
    if len({run.graph for run in runs}) == 1:
        return list(runs)
    packets = max(longest_queue(run.graph) for run in runs)
    return [with_queue(run, packets) for run in runs]


def with_queue(run: ResolvedScenario, packets: int) -> ResolvedScenario:
    """Returns the run with queues of this number of the largest packets, instead of `auto`."""
    size = packets * max(link.frame_bytes for link in run.graph.links)
    links = replace(run.scenario.links, queue_bytes=min(size, QUEUE_MAX_BYTES))
    scenario = replace(run.scenario, links=links)
    return replace(run, scenario=scenario, graph=with_links(run.graph, scenario))


def unlike(contenders: Sequence[Contender], workers: Sequence[Sequence[Job]]) -> Iterator[Problem]:
    """Yields a problem for each difference between the contenders' workers that no key of theirs
    explains. workers: each contender's jobs."""
    first, jobs = contenders[0], workers[0]
    for other, its_jobs in zip(contenders[1:], workers[1:], strict=True):
        where, path = other.own.where, f"compare.{other.name}"
        hosts, its_hosts = ([job.hosts for job in its] for its in (jobs, its_jobs))
        if its_hosts != hosts:
            what = (
                f"has other workers than {first.name}, because hosts with a server have no worker"
            )
            yield Problem(where, path, what, "`topology.servers`, or jobs that name their workers")
        for job, its_job in zip(jobs, its_jobs, strict=False):
            types = {job.dtype, its_job.dtype}
            if len(types) > 1 and INTEGERS in types:
                what = f"has other tensors than {first.name}: {its_job.dtype}, not {job.dtype}"
                yield Problem(where, f"{path}.workload.dtype", what, "another type of floats")
