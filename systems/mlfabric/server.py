"""A server of MLfabric. It holds the model, commits the granted updates in the order of their
grants, and limits how far its replica may be behind. The replica is a second server, which takes
over when the scheduler tells it to."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.endpoint import NEVER_NS
from agglab.hosts.workloads.async_sgd import norm_of
from agglab.systems.mlfabric import wire
from agglab.systems.mlfabric.group import Grant, GroupSum, Member, bitmap_of
from agglab.systems.mlfabric.store import Assembly, Store
from agglab.systems.mlfabric.transport import Message, Transport
from agglab.systems.mlfabric.wire import NEED, NUMBERS, PULL, PUSH, RECORD, Kind

GROUPS_AHEAD = 64
"""The number of groups beyond the next one to commit whose packets a server takes."""
EARLY_MAX = 4096
"""The largest number of pushes that are kept until their grant has come."""

COUNTERS = {
    "committed": ("updates", "updates that a server committed"),
    "groups": ("groups", "groups of one or more updates that a server committed at once"),
    "summed": ("packets", "packets accepted by a server that held the sum of several workers"),
    "repaired": (
        "packets",
        "packets that a server asked for again because the switch's sum did not arrive",
    ),
    "replicas": ("transfers", "transfers after which the replica had the server's version"),
    "copied": ("transfers", "transfers of the model that a replica received completely"),
    "copied_chunks": ("packets", "packets with a part of the model that a server sent its replica"),
    "copied_logs": ("packets", "packets with a part of the log that a server sent its replica"),
    "copied_updates": ("updates", "updates that are in these parts of the log"),
    "held_back": (
        "groups",
        "groups that a server committed late because the replica was too far behind",
    ),
}


@dataclass(frozen=True)
class ServerJob:
    """A server's settings. Its peers are the workers by rank, the scheduler, and the other server.

    index: 0, or 1 for the replica. servers: 1 or 2. workers: their number. divergence: the largest
    distance, in units, by which the replica may be behind. silence_ns: the silence after which
    packets of a group count as lost. first_group: the number of the session's first group.
    in_flight: the next model is sent only while fewer packets of models are on their way.
    """

    index: int
    servers: int
    workers: int
    elements: int
    lanes: int
    divergence: int
    silence_ns: int
    first_group: int
    in_flight: int


class Server:
    """The role of a server (endpoint.Role). The server in charge is the one whose index is the
    `epoch` of the transport."""

    listens, done, chunks, chunks_done = True, True, 0, 0

    def __init__(self, job: ServerJob, transport: Transport) -> None:
        self.job, self.transport = job, transport
        self.store = Store(job.elements, job.lanes)
        self.counters = dict.fromkeys(COUNTERS, 0)
        self._scheduler, self._other = job.workers, job.workers + 1
        self._next_group = job.first_group
        """The next group to commit; groups are numbered through the whole session. A replica learns
        it when it is promoted."""
        self.start_run(0)

    def start_run(self, now_ns: int) -> None:
        """Begins another training run, in which the model begins with version 0."""
        self.store.clear()
        self._group_sums: dict[int, GroupSum] = {}
        self._early: dict[int, list[Message]] = {}
        self._early_count = 0
        self._pulls: deque[tuple[int, np.void]] = deque()
        self._quiet_since_ns = now_ns
        self._behind: deque[tuple[int, int]] = deque()
        self._behind_sum = 0
        self._replicated = 0
        self._transfer: int | None = None
        self._transfers = 0
        self._held_back = 0
        """The last group that was complete before the replica's bound allowed its commit."""
        self._assembly: Assembly | None = None

    @property
    def in_charge(self) -> bool:
        """Whether this server commits updates. A replica does not, until the scheduler promotes
        it."""
        return self.job.index == self.transport.epoch

    @property
    def awaited(self) -> int:
        """The number of transfers to the replica that are under way."""
        return int(self._transfer is not None)

    @property
    def has_replica(self) -> bool:
        return self.job.servers == 2 and self.job.index == 0

    # Messages.

    def take(self, now_ns: int, message: Message) -> None:
        """Processes a message that belongs to the current run."""
        from_worker = message.peer < self.job.workers
        if from_worker and message.kind in (Kind.PUSH, Kind.SUMMED):
            self._push(now_ns, message)
        elif from_worker and message.kind == Kind.PULL:
            self._pull(message)
        elif message.peer == self._scheduler and message.kind == Kind.GRANT:
            self._granted(now_ns, message)
        elif message.peer == self._scheduler and message.kind == Kind.PROMOTE:
            self._promoted(message)
        elif message.peer == self._scheduler and message.kind == Kind.PING:
            pass  # it was acknowledged
        elif message.peer == self._other and message.kind in (Kind.STATE, Kind.LOG):
            self._replicate_here(message)
        elif message.peer == self._other and message.kind == Kind.REPLICATED:
            self._is_replicated(message)
        else:
            self.transport.refuse()
        self._commit(now_ns)
        self._replicate()

    def _granted(self, now_ns: int, message: Message) -> None:
        grant = Grant.of(message.body, self.job.workers, self.store.chunks)
        if grant is None:
            self.transport.refuse()
            return
        if not self.in_charge or grant.target != self.job.index or grant.group < self._next_group:
            self.transport.is_late()
            return
        self._group_sums[grant.group] = GroupSum(grant, self.job.lanes)
        self._quiet_since_ns = now_ns
        early = self._early.pop(grant.group, [])
        self._early_count -= len(early)
        for one in early:
            self._push(now_ns, one)

    def _push(self, now_ns: int, message: Message) -> None:
        head = np.frombuffer(message.body, PUSH, 1)[0]
        group = int(head["group"])
        if message.epoch != self.transport.epoch or not self.in_charge or group < self._next_group:
            self.transport.is_late()
            return
        group_sum = self._group_sums.get(group)
        if group_sum is None:
            self._keep(group, message)
            return
        chunk, present = int(head["chunk"]), int(head["present"])
        if message.kind == Kind.PUSH and present != 1 << message.peer:
            self.transport.refuse()
            return
        wanted = group_sum.wants(chunk, int(head["members"]), present)
        if wanted is None:
            self.transport.refuse()
        elif not wanted:
            self.transport.counters["duplicates"] += 1
        else:
            values = np.frombuffer(message.body, ">i4", offset=PUSH.itemsize).astype(np.int32)
            group_sum.take(chunk, present, values)
            self.counters["summed"] += present & (present - 1) != 0
            self._quiet_since_ns = now_ns

    def _keep(self, group: int, message: Message) -> None:
        """Keeps a push that came before the grant of its group."""
        if group >= self._next_group + GROUPS_AHEAD or self._early_count >= EARLY_MAX:
            self.transport.refuse()
            return
        self._early.setdefault(group, []).append(message)
        self._early_count += 1

    def _pull(self, message: Message) -> None:
        asked = np.frombuffer(message.body, PULL, 1)[0]
        since = int(asked["since"])
        if (
            not self.in_charge
            or message.epoch != self.transport.epoch
            or since > self.store.version
        ):
            self.transport.is_late()
            return
        self._pulls.append((message.peer, asked))
        self._serve()

    def _serve(self) -> None:
        """Sends the model to the workers that have requested it, one after the other. Each gets the
        model as it is when it is sent. Models are not put into the link's queue earlier, because
        they would grow old there, and short packets would have to wait behind them."""
        workers = range(self.job.workers)
        while self._pulls and sum(map(self.transport.load, workers)) < self.job.in_flight:
            peer, asked = self._pulls.popleft()
            log_from = 0 if asked["whole_log"] else None
            since = int(asked["since"])
            for kind, body in self.store.parts(int(asked["transfer"]), since, log_from):
                self.transport.send(peer, kind, body)

    # Commits.

    def _commit(self, now_ns: int) -> None:
        """Commits the groups whose values have all come, in the order of their grants. Stops at a
        group that would bring the replica further behind than `divergence` allows."""
        while (group_sum := self._group_sums.get(self._next_group)) is not None:
            if not group_sum.is_complete or group_sum.grant.base != self.store.version:
                return
            norm = norm_of(np.concatenate(list(group_sum.sums.values())))
            if self.has_replica and self._behind_sum + norm > self.job.divergence:
                self.counters["held_back"] += self._held_back != self._next_group
                self._held_back = self._next_group
                return
            self._commit_one(now_ns, group_sum, norm)

    def _commit_one(self, now_ns: int, group_sum: GroupSum, norm: int) -> None:
        grant = group_sum.grant
        records = [self._record(now_ns, grant, member) for member in grant.members]
        self.store.add(group_sum.sums, records)
        if self.has_replica:
            self._behind.append((self.store.version, norm))
            self._behind_sum += norm
        told = numbers(grant.group, self.store.version)
        for member in grant.members:
            self.transport.send(member.rank, Kind.COMMIT, told)
        self.transport.send(self._scheduler, Kind.COMMIT, told)
        self.counters["committed"] += len(grant.members)
        self.counters["groups"] += 1
        del self._group_sums[self._next_group]
        self._next_group += 1
        self._quiet_since_ns = now_ns

    def _record(self, now_ns: int, grant: Grant, member: Member) -> NDArray[np.void]:
        made = np.zeros(1, RECORD)[0]
        made["version"], made["group"], made["at_ns"] = grant.version, grant.group, now_ns
        made["read"], made["step"], made["rank"] = member.read, member.step, member.rank
        made["replicated"] = self._replicated if self.has_replica else wire.NO_REPLICA
        made["epoch"] = self.transport.epoch
        return made

    # What did not come.

    def tick(self, now_ns: int) -> None:
        """Sends models, and brings the replica up to date if there is spare bandwidth. If no packet
        has come for a while, asks for the missing packets of the next group."""
        self._serve()
        self._replicate()
        group_sum = self._group_sums.get(self._next_group)
        if group_sum is None or group_sum.is_complete or now_ns < self._repair_ns:
            return
        self._quiet_since_ns = now_ns
        for member in group_sum.grant.members:
            missing = group_sum.missing_of(member)
            if missing:
                body = np.zeros(1, NEED)
                body["group"], body["chunks"] = self._next_group, bitmap_of(missing)
                self.counters["repaired"] += len(missing)
                self.transport.send(member.rank, Kind.NEED, body.tobytes())

    @property
    def _repair_ns(self) -> int:
        return self._quiet_since_ns + self.job.silence_ns

    @property
    def deadline_ns(self) -> int:
        group_sum = self._group_sums.get(self._next_group)
        return NEVER_NS if group_sum is None or group_sum.is_complete else self._repair_ns

    # The replica.

    def _replicate(self) -> None:
        """Sends changes of the model to the replica, if a group is held back for it, if it is more
        than half as far behind as allowed, or if there is spare bandwidth because no worker waits
        for a model."""
        if not (self.in_charge and self.has_replica) or self._transfer is not None:
            return
        if self._replicated == self.store.version:
            return
        held_back = self._held_back == self._next_group
        urgent = held_back or 2 * self._behind_sum > self.job.divergence
        workers = range(self.job.workers)
        if not urgent and (self._pulls or not all(map(self.transport.is_idle, workers))):
            return
        self._transfers += 1
        self._transfer = self.store.version
        parts = self.store.parts(self._transfers, self._replicated, self._replicated)
        logs = sum(kind == Kind.LOG for kind, _ in parts)
        self.counters["copied_chunks"] += len(parts) - logs
        self.counters["copied_logs"] += logs
        self.counters["copied_updates"] += self.store.version - self._replicated
        for kind, body in parts:
            self.transport.send(self._other, kind, body)

    def _is_replicated(self, message: Message) -> None:
        version = int(np.frombuffer(message.body, NUMBERS, 1)["version"][0])
        if version != self._transfer:
            self.transport.is_late()
            return
        self._replicated, self._transfer = version, None
        self.counters["replicas"] += 1
        while self._behind and self._behind[0][0] <= version:
            self._behind_sum -= self._behind.popleft()[1]

    def _replicate_here(self, message: Message) -> None:
        if self.in_charge or self.job.index == 0:
            self.transport.is_late()
            return
        if self._assembly is None:
            self._assembly = Assembly.of(message.body)
        if not self._assembly.take(message.kind, message.body, self.store.chunks):
            self.transport.refuse()
            return
        if self._assembly.is_whole:
            assembly, self._assembly = self._assembly, None
            if not self.store.fits(assembly):
                self.transport.refuse()
                return
            self.store.adopt(assembly)
            self.counters["copied"] += 1
            self.transport.send(self._other, Kind.REPLICATED, numbers(0, self.store.version))

    def _promoted(self, message: Message) -> None:
        """Processes the scheduler's message that this server is now in charge. Discards a transfer
        of the model that is incomplete."""
        if self.job.index != message.epoch:
            self.transport.refuse()
            return
        self.transport.epoch = message.epoch
        self._assembly = None
        self._next_group = int(np.frombuffer(message.body, NUMBERS, 1)["group"][0])
        self.transport.send(self._scheduler, Kind.PROMOTED, numbers(0, self.store.version))

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [group, rank, ...] for each granted group. The ranks are those of the workers
        whose values have not come."""
        found = []
        for group, group_sum in self._group_sums.items():
            missing = [one.rank for one in group_sum.grant.members if group_sum.missing_of(one)]
            found.append([group, *missing])
        return found[:most]


def numbers(group: int, version: int) -> bytes:
    """Returns a message body with the fields of NUMBERS."""
    made = np.zeros(1, NUMBERS)
    made["group"], made["version"] = group, version
    return made.tobytes()
