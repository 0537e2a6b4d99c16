"""The names inside the paths of `expect:`: a worker, job, switch or link that this run will have.

A path such as `workers.9.sent` is a metric, but not of a run with four workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from testbed.scenario.errors import nearest, quote
from testbed.scenario.expectations import Expectation
from testbed.scenario.jobs import Tenant
from testbed.scenario.metric_names import GROWTH, METRICS, OF_JOB
from testbed.scenario.schema import Scenario
from topologies import Topology

Finding = tuple[str, str, str]
"""Key path, what is wrong, what is allowed."""
Names = Mapping[str, Sequence[str]]
"""What may stand after `workers.`, `jobs.` and so on."""

VERDICTS = ("network-bound", "cpu-bound", "starved", "virtual-time")
PACKETS = "switches.*.packets."


def unknown_names(scenario: Scenario, graph: Topology, jobs: Sequence[Tenant]) -> Iterator[Finding]:
    """Every expectation that no run of this scenario could meet, for want of what it names."""
    for expectation in scenario.expect:
        if expectation.metric in ("failure.worker", "failure.job"):
            found = _failure(scenario, expectation, jobs)
        elif expectation.metric == "fidelity.verdict":
            found = _unless_in(VERDICTS, str(expectation.equals), "verdict")
        else:
            found = _named(expectation.metric, graph, jobs)
        if found:
            what, allowed = found
            yield f"expect.{expectation.metric}", what, allowed


def _failure(
    scenario: Scenario, expectation: Expectation, jobs: Sequence[Tenant]
) -> tuple[str, str] | None:
    """`failure: {worker: host, job: name}`, the host one of that job's if a job is named."""
    if expectation.metric == "failure.job":
        return _unless_in([job.name for job in jobs], str(expectation.equals), "job")
    stated = {e.metric: e.equals for e in scenario.expect}
    asked = [job for job in jobs if stated.get("failure.job") in (None, job.name)]
    hosts = dict.fromkeys(host for job in asked or jobs for host in job.hosts)
    return _unless_in(list(hosts), str(expectation.equals), "host with a worker")


def _named(metric: str, graph: Topology, jobs: Sequence[Tenant]) -> tuple[str, str] | None:
    words = metric.removeprefix(GROWTH).split(".")
    if len(jobs) > 1 and words[0] in {path.partition(".")[0] for path in OF_JOB}:
        names = ", ".join(f"jobs.{job.name}.{'.'.join(words)}" for job in jobs)
        return f"{quote(metric)} is of one job, and there are {len(jobs)}", names
    job = _job_of(words, jobs)
    known = _known(graph, job)
    if words[0] == "jobs":
        wrong = _unless_in([job.name for job in jobs], words[1], "job")
        return wrong or _unknown(words[2:], known)
    if words[:2] == ["fairness", "shares"]:
        return _unless_in([job.name for job in jobs], words[2], "job")
    return _unknown(words, known) or _unknown_below(words, graph, jobs)


def _job_of(words: Sequence[str], jobs: Sequence[Tenant]) -> Tenant:
    named = (job for job in jobs if words[0] == "jobs" and job.name == words[1])
    return next(named, jobs[0])


def _known(graph: Topology, job: Tenant) -> Names:
    return {
        "workers": [str(rank) for rank in range(len(job.hosts))],
        "switches": [switch.name for switch in graph.switches],
        "links": [link.name for link in graph.links],
    }


def _unknown(words: Sequence[str], known: Names) -> tuple[str, str] | None:
    if words[0] not in known or len(words) < 2:
        return None
    kind = {"workers": "worker (by rank)", "switches": "switch", "links": "link"}[words[0]]
    return _unless_in(known[words[0]], words[1], kind)


def _unknown_below(
    words: Sequence[str], graph: Topology, jobs: Sequence[Tenant]
) -> tuple[str, str] | None:
    """The second name of `links.h1-s1.h1->s1...` and `switches.s1.jobs.a.new`."""
    if words[0] == "links":
        (link,) = (link for link in graph.links if link.name == words[1])
        return _unless_in([name for name, _, _, _ in link.directions()], words[2], "direction")
    if words[0] == "switches" and words[2] == "jobs":
        kinds = [p.removeprefix(PACKETS) for p in METRICS if p.startswith(PACKETS)]
        kinds.remove("malformed")
        wrong = _unless_in([job.name for job in jobs], words[3], "job")
        return wrong or _unless_in(kinds, words[4], "count of packets")
    return None


def _unless_in(known: Sequence[str], name: str, kind: str) -> tuple[str, str] | None:
    if name in known:
        return None
    return f"no such {kind} {quote(name)}{nearest(name, known)}", ", ".join(known)
