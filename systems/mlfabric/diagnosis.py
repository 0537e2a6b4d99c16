"""Finds which host is to blame if a training run does not end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agglab.testbed.systems.base import ActiveJob, MissingChunks, Waiting


def diagnose(
    job: ActiveJob,
    waiting: Mapping[str, Iterable[Waiting]],
    unserved: Mapping[str, Iterable[Waiting]],
) -> Mapping[str, MissingChunks]:
    """Returns what each host owes. A server waits for [group, rank, ...]: the ranks are those
    of the workers whose values have not arrived. If no server waits for anybody, packets are
    lost between the worker that gave up and the server or scheduler."""
    found: dict[str, MissingChunks] = {}
    for entries in unserved.values():
        for group, *places in entries:
            for place in places:
                if place < len(job.hosts):
                    host = job.hosts[place]
                    found.setdefault(host, MissingChunks()).never_sent.add(group)
    if not found:
        for host, waits in waiting.items():
            found[host] = MissingChunks(never_heard={entry[0] for entry in waits})
    return dict(sorted(found.items(), key=lambda each: -each[1].count))
