"""The scheduler of MLfabric. It gets every request and decides which updates are sent next. If the
server is silent for too long, the scheduler lets the replica take over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agglab.hosts.endpoint import NEVER_NS
from agglab.systems.mlfabric.group import Grant, Member
from agglab.systems.mlfabric.policy import Policy, Waiting
from agglab.systems.mlfabric.server import numbers
from agglab.systems.mlfabric.transport import Message, Transport
from agglab.systems.mlfabric.wire import DROP, NUMBERS, Kind, Reason

OUTSTANDING_MAX = 2
"""The largest number of groups that are granted and not committed. While one group is on its way,
the next is already granted."""
PINGS = 8
"""The number of pings to a silent server before the replica takes its place."""

COUNTERS = {
    "requests": ("updates", "updates that the scheduler was asked to admit"),
    "granted": ("updates", "updates that the scheduler admitted"),
    "stale": (
        "updates",
        "updates that the scheduler dropped before they were sent, because they were too old",
    ),
    "large": (
        "updates",
        "updates that the scheduler dropped because their norm exceeds the replica's bound",
    ),
    "lost": (
        "updates",
        "updates that the scheduler dropped because their version was lost with a dead server",
    ),
    "pings": ("packets", "packets by which the scheduler asked a silent server for an answer"),
    "takeovers": ("servers", "servers that the replica replaced"),
}


@dataclass(frozen=True)
class SchedulerJob:
    """The scheduler's settings. Its peers are the workers by rank, then the servers.

    workers, servers: their numbers. updates, time_ns: a run ends after this many updates, or after
    this time; a time of 0 means no limit. silence_ns: the time without a packet from the server
    after which the replica takes over.
    """

    workers: int
    servers: int
    chunks: int
    updates: int
    time_ns: int
    silence_ns: int
    first_group: int


class Scheduler:
    """The role of the scheduler (endpoint.Role)."""

    listens, done, chunks, chunks_done, awaited = True, True, 0, 0, 0

    def __init__(self, job: SchedulerJob, policy: Policy, transport: Transport) -> None:
        self.job, self.policy, self.transport = job, policy, transport
        self.counters = dict.fromkeys(COUNTERS, 0)
        self._next_group = job.first_group
        self._taking_over = False
        self.start_run(0)

    def start_run(self, now_ns: int) -> None:
        """Begins another training run, in which the model begins with version 0."""
        self._began_ns = now_ns
        self._waiting: list[Waiting] = []
        self._outstanding: list[Grant] = []
        self._version = 0
        """The version of the model when all granted updates are committed."""
        self._taken_over_at: int | None = None
        """The version at which the replica took over, or None. It is the last version that both
        servers have had."""
        self._asked = 0
        self._pinged_ns = now_ns
        self._is_late = self._is_over = False
        self._idle: set[int] = set()
        """The workers that compute no more, because their accounts are full."""

    @property
    def _server(self) -> int:
        """The index of the server in charge among the peers."""
        return self.job.workers + self.transport.epoch

    # Messages.

    def take(self, now_ns: int, message: Message) -> None:
        """Processes a message that belongs to the current run."""
        if message.peer < self.job.workers and message.kind == Kind.REQUEST:
            self._request(message)
        elif message.peer < self.job.workers and message.kind == Kind.IDLE:
            self._idle.add(message.peer)
            if self._is_over:
                self._tell_over(message.peer)
        elif message.peer >= self.job.workers and message.kind == Kind.COMMIT:
            self._committed(message)
        elif message.peer == self._server and message.kind == Kind.PROMOTED:
            self._promoted(message)
        else:
            self.transport.refuse()
        self._schedule(now_ns)

    def _request(self, message: Message) -> None:
        member = Member.of_request(message.peer, message.body)
        if not member.chunks or member.chunks[-1] >= self.job.chunks:
            self.transport.refuse()
            return
        self.counters["requests"] += 1
        self._asked += 1
        if self._is_over:
            self._tell_over(member.rank)
        elif self._is_lost(member.read, message.epoch):
            self._drop(member, Reason.LOST)
        else:
            self._waiting.append(Waiting(member, self._asked))

    def _is_lost(self, read: int, epoch: int) -> bool:
        """Returns whether only a server that has been replaced had this version of the model. read:
        the version. epoch: the epoch in which a worker read it."""
        if epoch == self.transport.epoch:
            return False
        return self._taking_over or (self._taken_over_at is not None and read > self._taken_over_at)

    def _drop(self, member: Member, reason: Reason) -> None:
        body = np.zeros(1, DROP)
        body["step"], body["reason"] = member.step, reason
        self.transport.send(member.rank, Kind.DROP, body.tobytes())
        if reason != Reason.OVER:
            self.counters[reason.name.lower()] += 1

    def _committed(self, message: Message) -> None:
        group = int(np.frombuffer(message.body, NUMBERS, 1)["group"][0])
        if not self.job.first_group <= group < self._next_group:
            self.transport.refuse()
            return
        if message.epoch != self.transport.epoch or message.peer != self._server:
            self.transport.is_late()
            return
        # They are committed in order, and what says so may come in any: a later one's may have told
        # of this one already.
        self._outstanding = [one for one in self._outstanding if one.group > group]

    # Whom to let send.

    def _schedule(self, now_ns: int) -> None:
        while not (self._taking_over or self._is_over) and not self._ends(now_ns):
            self._drop_refused()
            if len(self._outstanding) == OUTSTANDING_MAX or not self._waiting:
                return
            self._grant(now_ns)

    def _drop_refused(self) -> None:
        kept = []
        for one in self._waiting:
            reason = self.policy.refused(one.member, self._version)
            if reason is None:
                kept.append(one)
            else:
                self._drop(one.member, reason)
        self._waiting = kept

    def _grant(self, now_ns: int) -> None:
        chosen = self.policy.choose(self._waiting, self.job.updates - self._version)
        members = tuple(one.member for one in chosen)
        grant = Grant(self._next_group, self._version, self.transport.epoch, members)
        self._next_group += 1
        self._version = grant.version
        self._waiting = [one for one in self._waiting if one not in chosen]
        if not self._outstanding:
            self.transport.heard_ns[self._server] = max(
                self.transport.heard_ns[self._server], now_ns
            )
        self._outstanding.append(grant)
        self.counters["granted"] += len(members)
        self.transport.send(self._server, Kind.GRANT, grant.body)
        for member in members:
            self.transport.send(member.rank, Kind.GRANT, grant.body)

    def _ends(self, now_ns: int) -> bool:
        """Returns whether no more updates are to be granted. If so, and if all granted updates are
        committed, ends the run."""
        if self.job.time_ns and now_ns >= self._began_ns + self.job.time_ns:
            self._is_late = True
        is_idle = len(self._idle) == self.job.workers and not self._waiting
        if self._version < self.job.updates and not self._is_late and not is_idle:
            return False
        if not self._outstanding:
            self._is_over = True
            for one in self._waiting:
                self._drop(one.member, Reason.OVER)
            self._waiting = []
            for rank in range(self.job.workers):
                self._tell_over(rank)
        return True

    def _tell_over(self, rank: int) -> None:
        """Tells a worker that the run is over. A worker that begins the run only later sends
        requests all the same, and is then told again."""
        self.transport.send(rank, Kind.OVER, numbers(0, self._version))

    # The server's death.

    def tick(self, now_ns: int) -> None:
        """Grants updates. Pings the server if it is silent, and lets the replica take over if the
        server stays silent. Before the first run, does nothing."""
        if not self.transport.run:
            return
        self._schedule(now_ns)
        if not self._watches:
            return
        if now_ns >= self._silent_since_ns + self.job.silence_ns:
            self._take_over()
        elif now_ns >= self._ping_ns:
            self._pinged_ns = now_ns
            self.counters["pings"] += 1
            self.transport.send(self._server, Kind.PING)

    @property
    def _watches(self) -> bool:
        has_replica = self.job.servers == 2 and self.transport.epoch == 0
        return has_replica and not self._is_over

    @property
    def _silent_since_ns(self) -> int:
        return max(self.transport.heard_ns[self._server], self._began_ns)

    @property
    def _ping_ns(self) -> int:
        return max(self._silent_since_ns, self._pinged_ns) + self.job.silence_ns // PINGS

    def _take_over(self) -> None:
        self.counters["takeovers"] += 1
        self.transport.epoch += 1
        self._taking_over = True
        self._outstanding = []
        self.transport.send(self._server, Kind.PROMOTE, numbers(self._next_group, 0))

    def _promoted(self, message: Message) -> None:
        if not self._taking_over:
            self.transport.refuse()
            return
        self._taking_over = False
        self._version = int(np.frombuffer(message.body, NUMBERS, 1)["version"][0])
        self._taken_over_at = self._version
        for rank in range(self.job.workers):
            self.transport.send(rank, Kind.SERVER, numbers(0, self._version))
        kept = []
        for one in self._waiting:
            if one.member.read > self._version:
                self._drop(one.member, Reason.LOST)
            else:
                kept.append(one)
        self._waiting = kept

    @property
    def deadline_ns(self) -> int:
        """The time at which `tick` must be called."""
        if not self.transport.run:
            return NEVER_NS
        found = [NEVER_NS]
        if self._watches:
            found += [self._ping_ns, self._silent_since_ns + self.job.silence_ns]
        if self.job.time_ns and not (self._is_late or self._is_over):
            found.append(self._began_ns + self.job.time_ns)
        return min(found)

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [group, ranks of its members ...] for each group that is granted and not
        committed."""
        found = [[one.group, *(m.rank for m in one.members)] for one in self._outstanding]
        return found[:most]
