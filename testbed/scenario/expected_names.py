"""Checks the names inside the paths of `expect:`. A path may name a worker, job, switch or link
only if the run has it.

For example, `workers.9.sent` is a metric, but a run with four workers does not have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agglab.testbed.base.problems import nearest, quote
from agglab.testbed.scenario.known import Known
from agglab.testbed.scenario.metric_names import of_job
from agglab.testbed.schema.expectations import FINDINGS, Expectation
from agglab.testbed.schema.finding_kinds import FINDING_KINDS
from agglab.testbed.schema.jobs import Finding, Job

Names = Mapping[str, Sequence[str]]
"""The names that may follow each first word of a path, such as `workers` or `links`."""

VERDICTS = ("network-bound", "waiting", "cpu-bound", "starved")
WAITED_FOR = ("timers", "faults", "window", "losses", "brevity", "delay", "unknown")


def unknown_names(known: Known) -> Iterator[Finding]:
    """Yields every expectation that no run of this scenario could meet, because something that it
    names does not exist."""
    for expectation in known.scenario.expect:
        if not known.comparison.concerns(expectation.metric):
            continue
        found: tuple[str, str] | None
        if expectation.metric == "fidelity.verdict":
            found = _unless_all_in(VERDICTS, expectation, "verdict")
        elif expectation.metric == "fidelity.waited_for":
            found = _unless_all_in(WAITED_FOR, expectation, "reason to wait")
        elif expectation.metric == FINDINGS:
            found = _unless_all_in(list(FINDING_KINDS), expectation, "finding")
        elif expectation.metric == "failure.worker":
            found = _failing_worker(expectation, known)
        elif not known.job_names_known:
            found = _unknown(_words(expectation.metric, known), _of_network(known))
        elif expectation.metric == "failure.job":
            found = _unless_in([job.name for job in known.jobs], str(expectation.equals), "job")
        else:
            found = _named(expectation.metric, known)
        if found is not None:
            what, allowed = found
            yield f"expect.{expectation.metric}", what, allowed


def _failing_worker(expectation: Expectation, known: Known) -> tuple[str, str] | None:
    """Checks `failure: {worker: host, job: name}`. If a job is named, the host must have an agent
    of the job."""
    if known.graph is None:
        return None
    if not (known.all_hosts_known and known.job_names_known):
        every = [host.name for host in known.graph.hosts]
        return _unless_in(every, str(expectation.equals), "host")
    jobs = known.jobs
    stated = {e.metric: e.equals for e in known.scenario.expect}
    asked = [job for job in jobs if stated.get("failure.job") in (None, job.name)]
    hosts = dict.fromkeys(host for job in asked or jobs for host in (*job.hosts, *job.servers))
    or_server = " or server" if any(job.servers for job in jobs) else ""
    return _unless_in(list(hosts), str(expectation.equals), f"host with a worker{or_server}")


def _named(metric: str, known: Known) -> tuple[str, str] | None:
    jobs = known.jobs
    words = _words(metric, known)
    if len(jobs) > 1 and words[0] in {path.partition(".")[0] for path in of_job(known.system)}:
        path = ".".join(words)
        of_runs = metric.removesuffix(path)
        allowed = ", ".join(f"{of_runs}jobs.{job.name}.{path}" for job in jobs)
        return f"{quote(metric)} is of one job, and there are {len(jobs)}", allowed
    job = _job_of(words, jobs)
    names = _known(known, job)
    if words[0] == "jobs":
        wrong = _unless_in([job.name for job in jobs], words[1], "job")
        return wrong or _unknown(words[2:], names)
    if words[:2] == ["fairness", "shares"]:
        return _unless_in([job.name for job in jobs], words[2], "job")
    return _unknown(words, names) or _unknown_below(words, known)


def _words(metric: str, known: Known) -> list[str]:
    _, path = known.comparison.about(metric)
    return path.split(".")


def _job_of(words: Sequence[str], jobs: Sequence[Job]) -> Job:
    named = (job for job in jobs if words[0] == "jobs" and job.name == words[1])
    return next(named, jobs[0])


def _known(known: Known, job: Job) -> Names:
    """Returns the names that a job's metrics may have. If the job's hosts are not known, any host
    may be one of them."""
    if known.graph is None:
        return {}
    hosts = job.hosts if known.hosts_known(job) else known.graph.hosts
    return {"workers": [str(rank) for rank in range(len(hosts))], **_of_network(known)}


def _of_network(known: Known) -> Names:
    if known.graph is None:
        return {}
    return {
        "switches": [switch.name for switch in known.graph.switches],
        "links": [link.name for link in known.graph.links],
    }


def _unknown(words: Sequence[str], known: Names) -> tuple[str, str] | None:
    if words[0] not in known or len(words) < 2:
        return None
    kind = {"workers": "worker (by rank)", "switches": "switch", "links": "link"}[words[0]]
    return _unless_in(known[words[0]], words[1], kind)


def _unknown_below(words: Sequence[str], known: Known) -> tuple[str, str] | None:
    """Checks the second name of a metric's path that has two, as in `links.h1-s1.h1->s1...` and
    `switches.s1.jobs.a.new`."""
    if words[0] == "links" and known.graph is not None:
        (link,) = (link for link in known.graph.links if link.name == words[1])
        return _unless_in([name for name, _, _, _ in link.directions()], words[2], "direction")
    if words[0] == "switches" and words[2] == "jobs":
        counted = known.system.counters.items()
        kinds = [kind for kind, counter in counted if counter.of_jobs]
        wrong = _unless_in([job.name for job in known.jobs], words[3], "job")
        return wrong or _unless_in(kinds, words[4], "count of packets")
    return None


def _unless_all_in(
    known: Sequence[str], expectation: Expectation, kind: str
) -> tuple[str, str] | None:
    words = expectation.listed or (str(expectation.equals),)
    return next((wrong for word in words if (wrong := _unless_in(known, word, kind))), None)


def _unless_in(known: Sequence[str], name: str, kind: str) -> tuple[str, str] | None:
    if name in known:
        return None
    return f"no such {kind} {quote(name)}{nearest(name, known)}", ", ".join(known)
