"""Computes how many bytes a job of MLfabric puts on the links.

Who sends what depends on time. The bytes follow from what was decided in a run: the server's log,
which says which updates were granted together, and the workers' accounts, which say which updates
were dropped and which versions of the model were read. Both are verified apart from this module.
What they do not say is how often the scheduler asked a silent server for an answer, and in how many
parts the replica got the model. These decisions the agents count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.workloads import async_sgd
from agglab.systems.mlfabric import scheduler, wire
from agglab.systems.mlfabric.wire import Kind
from agglab.testbed.scenario.workloads.async_sgd import TrainingHistory
from agglab.testbed.systems.base import ActiveJob, ByteRange, Unpredictable
from agglab.testbed.systems.forwarding import Flow
from agglab.testbed.systems.plan.paths import path
from agglab.topologies import Topology

REFUSED = (async_sgd.STALE, async_sgd.LARGE, async_sgd.OVER)
"""The outcomes of updates that were requested and not granted. The scheduler tells the worker by a
DROP, or by another OVER of the same length."""


@dataclass(frozen=True)
class Place:
    """Where a job runs, and with packets of how many lanes. sums: whether the switch has memory in
    which it sums updates. servers: the hosts of the server and, if there is one, of its replica.
    The scheduler is on the host of the last one."""

    graph: Topology
    job: ActiveJob
    lanes: int
    sums: bool

    @property
    def servers(self) -> Sequence[str]:
        return self.job.job.servers

    @property
    def scheduler(self) -> str:
        return self.servers[-1]

    def frame_bytes(self, kind: Kind, count: int = 0) -> int:
        """Returns the bytes of a frame of this kind. count: as in wire.body_bytes."""
        return wire.frame_bytes(wire.HEADER_BYTES + wire.body_bytes(kind, self.lanes, count))


def flows(at: Place) -> list[Flow]:
    """Returns who sends to whom. How much is sent is decided in the run."""
    server, workers = at.servers[0], at.job.hosts
    pairs = [(host, to) for host in workers for to in (*at.servers, at.scheduler)]
    pairs += [(server, at.scheduler), *((server, replica) for replica in at.servers[1:])]
    both = dict.fromkeys([*pairs, *((b, a) for a, b in pairs)])
    return [Flow(source, target, 0) for source, target in both]


def decided_bytes(
    at: Place, histories: Sequence[TrainingHistory | None], counts: Mapping[str, int]
) -> Mapping[str, int]:
    """Returns the bytes by direction without loss (see Deciding.decided_bytes)."""
    if counts.get("takeovers"):
        raise Unpredictable(
            f"the replica of {at.job.job.name} took the place of its server, and nobody knows "
            "what was on its way to that server"
        )
    sent, refused = _Sent(at), 0
    for history in histories:
        if history is None:
            raise Unpredictable(f"results of {at.job.job.name} were wrong")
        _check(at, history)
        _of_run(at, sent, history)
        outcomes = [account["outcome"] for account in history.accounts]
        refused += int(np.isin(np.concatenate(outcomes), REFUSED).sum())
    if refused > counts.get("requests", 0) - counts.get("granted", 0):
        raise Unpredictable(
            f"a request of {at.job.job.name} came after the end of its run, and the scheduler does "
            "not answer such a request"
        )
    _of_replica(at, sent, counts)
    return sent.by_direction()


def sums_owed(
    at: Place, cells: int, histories: Sequence[TrainingHistory | None], counts: Mapping[str, int]
) -> int:
    """Returns how many sums the switch at the server owed (see Owing.sums_owed). cells: the number
    of the job's cells. It is not known if the chunks of the groups that are under way at once share
    cells, or if the replica took the server's place."""
    chunks = -(-at.job.job.elements // at.lanes)
    if cells < scheduler.OUTSTANDING_MAX * chunks or counts.get("takeovers") or None in histories:
        return 0
    groups = (group for history in histories if history for group in _groups(at, history))
    return sum(
        len(group.past_switch(chunk, at.servers[0])) > 1
        for group in groups
        for chunk in group.chunks
    )


def _check(at: Place, history: TrainingHistory) -> None:
    work = at.job.job.work
    assert isinstance(work, async_sgd.AsyncSgd), "the only workload"
    most = work.steps_max
    if len(history.accounts) != len(at.job.job.hosts):
        raise Unpredictable(f"{at.job.job.name} went on without some of its workers")
    for host, account in zip(at.job.job.hosts, history.accounts, strict=True):
        if len(account) == most:
            raise Unpredictable(
                f"{host} ended all its {most} steps, and nobody knows whether that was before the "
                "scheduler ended the run"
            )


class _Sent:
    """The bytes that agents send each other. A packet that is acknowledged adds an ACK in the other
    direction."""

    def __init__(self, at: Place) -> None:
        self._at = at
        self._whole: Counter[tuple[str, str]] = Counter()
        self._parts: Counter[tuple[str, str]] = Counter()
        self._sums: Counter[tuple[str, str]] = Counter()

    def packets(self, source: str, target: str, kind: Kind, count: int = 1, of: int = 0) -> None:
        """Adds packets that are acknowledged. of: as `count` of Place.frame_bytes."""
        self._whole[source, target] += count * self._at.frame_bytes(kind, of)
        self._whole[target, source] += count * wire.frame_bytes(wire.HEADER_BYTES)

    def extended(self, source: str, target: str, size: int) -> None:
        """Adds bytes by which packets are longer than `packets` has counted them."""
        self._whole[source, target] += size

    def summed(self, sources: Sequence[str], server: str) -> None:
        """Adds one packet of each of several workers, which the server's switch sums up."""
        size = self._at.frame_bytes(Kind.PUSH)
        for source in sources:
            self._parts[source, server] += size
        self._sums[sources[0], server] += size

    def by_direction(self) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        cut = ((self._whole, slice(None)), (self._parts, slice(-1)), (self._sums, slice(-1, None)))
        for sizes, part in cut:
            for (source, target), size in sizes.items():
                for direction in path(self._at.graph, source, target)[part]:
                    found[direction] += size
        return found


@dataclass(frozen=True)
class _Group:
    """One group in the log. version: the version to which it led. members: the host of each member,
    and the chunks that its update changes."""

    version: int
    members: Sequence[tuple[str, frozenset[int]]]

    @property
    def chunks(self) -> frozenset[int]:
        return frozenset[int]().union(*(chunks for _, chunks in self.members))

    def sources(self, chunk: int) -> Sequence[str]:
        """Returns the hosts of the members that have values in a chunk."""
        return [host for host, chunks in self.members if chunk in chunks]

    def past_switch(self, chunk: int, server: str) -> Sequence[str]:
        """Returns those of these hosts whose values cross the switch to the server's host."""
        return [host for host in self.sources(chunk) if host != server]


def _groups(at: Place, history: TrainingHistory) -> Iterator[_Group]:
    """Yields the groups in the order in which they were committed."""
    log = history.log
    for group in dict.fromkeys(log["group"].tolist()):
        entries = log[log["group"] == group]
        members = []
        for rank, step in zip(entries["rank"].tolist(), entries["step"].tolist(), strict=True):
            chunks = frozenset((history.changed[rank, step] // at.lanes).tolist())
            members.append((at.job.job.hosts[rank], chunks))
        yield _Group(int(entries["version"][0]), members)


def _of_run(at: Place, sent: _Sent, history: TrainingHistory) -> None:
    groups = list(_groups(at, history))
    for group in groups:
        _of_group(at, sent, group)
    versions = np.array([group.version for group in groups], np.int64)
    changed = np.zeros((len(groups), wire.CHUNKS_MAX), bool)
    for row, group in enumerate(groups):
        changed[row, list(group.chunks)] = True
    for host, account in zip(at.job.job.hosts, history.accounts, strict=True):
        _of_steps(at, sent, host, account)
        _of_reads(at, sent, host, account["read"], len(history.log), versions, changed)


def _of_group(at: Place, sent: _Sent, group: _Group) -> None:
    """Adds the grant, the values and the commit of a group."""
    server = at.servers[0]
    for told in (server, *(host for host, _ in group.members)):
        sent.packets(at.scheduler, told, Kind.GRANT, of=len(group.members))
    for told in (at.scheduler, *(host for host, _ in group.members)):
        sent.packets(server, told, Kind.COMMIT)
    for chunk in group.chunks:
        sources, together = group.sources(chunk), group.past_switch(chunk, server)
        if len(together) > 1 and at.sums:
            sent.summed(together, server)
            sources = [host for host in sources if host == server]
        for source in sources:
            sent.packets(source, server, Kind.PUSH)


def _of_steps(at: Place, sent: _Sent, host: str, account: NDArray[Any]) -> None:
    """Adds the requests of a worker's updates, and what the scheduler answers besides grants."""
    outcomes = Counter(account["outcome"].tolist())
    silent = outcomes[async_sgd.EMPTY] + outcomes[async_sgd.UNFINISHED]
    sent.packets(host, at.scheduler, Kind.REQUEST, len(account) - silent)
    sent.packets(at.scheduler, host, Kind.DROP, sum(outcomes[each] for each in REFUSED))
    sent.packets(at.scheduler, host, Kind.OVER)


def _of_reads(
    at: Place,
    sent: _Sent,
    host: str,
    read: NDArray[np.int64],
    last: int,
    versions: NDArray[np.int64],
    changed: NDArray[np.bool_],
) -> None:
    """Adds the models that a worker read. read: the version from which it computed each of its
    steps, the first of which is version 0. The last model, of version `last`, comes with the whole
    log. versions, changed: for each group, its version and whether it changed each chunk."""
    server, full = at.servers[0], wire.records_max(at.lanes)
    for since, version in zip(read.tolist(), [*read[1:].tolist(), None], strict=True):
        sent.packets(host, server, Kind.PULL)
        until = last if version is None else version
        rows = (versions > since) & (versions <= until)
        parts = int(changed[rows].any(axis=0).sum())
        sent.packets(server, host, Kind.STATE, parts)
        logs = [] if version is not None else [min(full, last - at) for at in range(0, last, full)]
        for records in logs if parts or logs else [0]:
            sent.packets(server, host, Kind.LOG, of=records)


def _of_replica(at: Place, sent: _Sent, counts: Mapping[str, int]) -> None:
    """Adds what the server sent its replica, and the scheduler's questions to the server."""
    server = at.servers[0]
    sent.packets(at.scheduler, server, Kind.PING, counts.get("pings", 0))
    if len(at.servers) == 1:
        return
    replica, logs = at.servers[1], counts.get("copied_logs", 0)
    sent.packets(server, replica, Kind.STATE, counts.get("copied_chunks", 0))
    sent.packets(server, replica, Kind.LOG, logs)
    sent.extended(server, replica, counts.get("copied_updates", 0) * wire.RECORD.itemsize)
    sent.packets(replica, server, Kind.REPLICATED, counts.get("copied", 0))


def extra_bytes(at: Place, counts: Mapping[str, int]) -> ByteRange:
    """Returns how many bytes more than predicted agents sent (see Traffic): packets that
    were sent again, acknowledgements of packets that came again or late, and values that a server
    asked for because their sum did not come."""
    acknowledged = wire.frame_bytes(wire.HEADER_BYTES)
    pushed, needed = at.frame_bytes(Kind.PUSH), at.frame_bytes(Kind.NEED)
    most = counts["retransmitted"] * wire.frame_bytes(wire.longest_datagram_bytes(at.lanes))
    most += (counts["duplicates"] + counts["late"]) * acknowledged
    most += counts["repaired"] * (needed + acknowledged)
    most += counts["repairs"] * (pushed + acknowledged)
    return ByteRange(0, most)
