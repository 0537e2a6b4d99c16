"""Common parts of systems whose workers push to servers: checks attacks from hosts of servers, and
finds which host is cut off if a round does not end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from agglab.hosts.agent_core import WAITING_MAX
from agglab.testbed.schema.jobs import Finding
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import ActiveJob, MissingChunks, Waiting


def attacks_from_servers(
    scenario: Scenario, system: str, patterns: Sequence[str], trust: Trust
) -> Iterator[Finding]:
    """Yields the problems of attacks that come from hosts with servers, for System.check. patterns:
    the hosts that only run servers."""
    for index, fault in enumerate(scenario.faults):
        host = fault.host or ""
        serves = any(fnmatchcase(host, pattern) for pattern in patterns)
        if fault.kind == "attack" and serves and trust(f"faults[{index}]", f"{system}.servers"):
            what = f"{host} is a server of every job, so it cannot attack one from outside"
            yield f"faults[{index}].host", what, "a host without a server"


Pair = tuple[str, str]
"""The hosts of a worker and of a server between which something is missing."""


def diagnose(
    job: ActiveJob,
    waiting: Mapping[str, Iterable[Waiting]],
    unserved: Mapping[str, Iterable[Waiting]],
) -> Mapping[str, MissingChunks]:
    """Returns what each host owes. A worker waits for [chunk, index of its server]. A server waits
    for [chunk, rank, ...], the workers whose values have not arrived.

    If something is missing between a worker and a server, either of them may be the cause. The host
    in most of these pairs comes first, with everything that is missing between it and other hosts.
    """
    evidence = _Evidence(job, unserved)
    for host, entries in waiting.items():
        for chunk, server in entries:
            evidence.worker_waits(host, chunk, job.job.servers[server])
    for host in job.hosts:
        if host not in waiting:
            evidence.worker_is_silent(host)
    return evidence.missing_by_host()


class _Evidence:
    """What is missing between workers and servers. never_sent: for each pair of a worker and a
    server, the chunks whose values the server lacks. never_heard: for each pair, the chunks whose
    results the worker has not received."""

    def __init__(self, job: ActiveJob, unserved: Mapping[str, Iterable[Waiting]]) -> None:
        self._job = job
        self._lists = {host: list(entries) for host, entries in unserved.items()}
        self._missing: dict[tuple[str, int], frozenset[str]] = {
            (server, chunk): frozenset(job.hosts[rank] for rank in ranks)
            for server, entries in self._lists.items()
            for chunk, *ranks in entries
        }
        self._never_sent: dict[Pair, set[int]] = {}
        self._never_heard: dict[Pair, set[int]] = {}

    def worker_waits(self, host: str, chunk: int, server: str) -> None:
        """Records that a worker waits. Either its values have not arrived at the server, or the
        result has not arrived at the worker."""
        missing = self._missing.get((server, chunk))
        if missing is None:
            # The server has served it, or never begun it; but a full list may leave out chunks.
            if len(self._lists.get(server, ())) < WAITING_MAX:
                self._never_heard.setdefault((host, server), set()).add(chunk)
        elif host in missing:
            self._never_sent.setdefault((host, server), set()).add(chunk)

    def worker_is_silent(self, host: str) -> None:
        """Records that a worker does not answer, and therefore will not send the values that
        servers lack."""
        for (server, chunk), missing in self._missing.items():
            if host in missing:
                self._never_sent.setdefault((host, server), set()).add(chunk)

    def missing_by_host(self) -> Mapping[str, MissingChunks]:
        pairs = self._never_sent.keys() | self._never_heard.keys()
        worker_of = Counter(worker for worker, _ in pairs)
        server_of = Counter(server for _, server in pairs)
        # Of a worker and a server that have but each other, the worker.
        hosts = list(dict.fromkeys([*self._job.hosts, *self._job.job.servers]))
        hosts.sort(key=lambda host: -(worker_of[host] + server_of[host]))
        found = {host: self._owed_by(host) for host in hosts}
        return {host: missing for host, missing in found.items() if missing.count}

    def _owed_by(self, host: str) -> MissingChunks:
        """Returns what a host owes. For a host that only runs servers, these are all chunks that
        are missing between it and workers."""
        if host not in self._job.hosts:
            of_both = (*self._never_sent.items(), *self._never_heard.items())
            lacking = (chunks for (_, at), chunks in of_both if at == host)
            return MissingChunks(set().union(*lacking))
        return MissingChunks(
            set().union(*(c for (worker, _), c in self._never_sent.items() if worker == host)),
            set().union(*(c for (worker, _), c in self._never_heard.items() if worker == host)),
        )
