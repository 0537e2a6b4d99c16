"""A worker of MLfabric. It reads the model, computes an update for a while, and requests its
transfer. It then reads the model again at once, unless too many of its updates are still on their
way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.endpoint import NEVER_NS
from agglab.hosts.workloads import async_sgd
from agglab.hosts.workloads.async_sgd import AsyncSgd, norm_of
from agglab.systems.mlfabric.group import Grant, Member, chunks_in
from agglab.systems.mlfabric.store import Assembly, Store
from agglab.systems.mlfabric.transport import Message, Transport
from agglab.systems.mlfabric.wire import (
    DROP,
    NEED,
    NO_REPLICA,
    NUMBERS,
    PULL,
    PUSH,
    RECORD,
    Kind,
    Reason,
)

EARLY_MAX = 64
OUTCOMES: Mapping[int, int] = {
    Reason.STALE: async_sgd.STALE,
    Reason.LARGE: async_sgd.LARGE,
    Reason.LOST: async_sgd.LOST,
    Reason.OVER: async_sgd.OVER,
}

COUNTERS = {
    "steps": ("updates", "updates that a worker computed, including those that change nothing"),
    "on_the_way": ("packets", "packets that a worker sent for the switch to sum"),
    "pulls": ("models", "models that a worker asked for"),
    "repairs": (
        "packets",
        "packets that a server asked a worker for because the switch's sum did not arrive",
    ),
}


@dataclass(frozen=True)
class WorkerJob:
    """A worker's settings. Its peers are the servers, then the scheduler.

    ahead: the number of updates that may be on their way while the next is computed. cells,
    first_cell: the range of the switch's memory for this job's groups; if `cells` is 0, the switch
    sums nothing. past_switch: for each server, the workers whose packets to this server cross no
    switch, as a number with a bit for each rank.
    """

    rank: int
    workers: int
    servers: int
    lanes: int
    ahead: int
    cells: int
    first_cell: int
    past_switch: Sequence[int]


@dataclass
class Update:
    """An update for which a transfer has been requested. values: its values, by chunk. grant: the
    grant, or None until it comes."""

    member: Member
    epoch: int
    values: dict[int, NDArray[np.int32]]
    grant: Grant | None = None


class Worker:
    """The role of a worker (endpoint.Role). Steps are numbered from 0 in each run."""

    listens, awaited = True, 0

    def __init__(self, job: WorkerJob, work: AsyncSgd, transport: Transport) -> None:
        self.job, self.work, self.transport = job, work, transport
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.store = Store(work.elements, job.lanes)
        self.done = True
        self.chunks = self.chunks_done = 0
        self._scheduler = job.servers
        self._transfers = 0
        self._compute_ns: int | None = None
        self._updates: dict[int, Update] = {}

    def begin(self, now_ns: int, values: NDArray, out: NDArray) -> None:
        """Begins a training run. values: the worker's documents. out: room for the result of the
        run."""
        self._documents, self._out = values, out.view(self.work.result)[0]
        self._out["began_ns"] = now_ns
        self._account = self._out["account"]
        self.store.clear()
        self.done, self.chunks, self.chunks_done = False, self.work.updates, 0
        self._step = 0
        self._updates = {}
        self._read, self._read_epoch = 0, self.transport.epoch
        self._pull: Assembly | None = None
        self._pulling = self._reads_last = self._is_over = False
        self._last_version = 0
        self._kept = 0
        self._early: list[Message] = []
        self._compute(now_ns)

    @property
    def _server(self) -> int:
        """The index of the server in charge among the peers."""
        return self.transport.epoch

    # Steps.

    def _compute(self, now_ns: int) -> None:
        """Begins to compute an update from the model that this worker has read."""
        if self._step == self.work.steps_max:
            self.transport.send(self._scheduler, Kind.IDLE)
            return
        rows = self.work.rows_of(self._documents, self._step)
        self._compute_ns = now_ns + int(rows["compute_ns"][0])

    def _computed(self, now_ns: int) -> None:
        """Ends the step whose computing time is over, and requests the transfer of its update."""
        step, self._step, self._compute_ns = self._step, self._step + 1, None
        rows = self.work.rows_of(self._documents, step)
        update = self.work.update(self.store.model, rows)
        self.counters["steps"] += 1
        mine = self._account[step]
        mine["read"], mine["epoch"] = self.store.version, self._read_epoch
        mine["computed_ns"] = now_ns
        if not update.any():
            self._ended(now_ns, step, async_sgd.EMPTY)
        else:
            self._ask(step, update)
        if not self._is_over:
            self._go_on()

    def _ask(self, step: int, update: NDArray[np.int32]) -> None:
        padded = np.zeros(self.store.values.shape, np.int32)
        padded.reshape(-1)[: update.size] = update
        chunks = np.flatnonzero(padded.any(axis=1)).tolist()
        read = self.store.version
        member = Member(self.job.rank, step, read, norm_of(update), tuple(chunks))
        values = {chunk: padded[chunk] for chunk in chunks}
        self._updates[step] = Update(member, self._read_epoch, values)
        self.transport.send(self._scheduler, Kind.REQUEST, member.request)

    def _go_on(self) -> None:
        """Requests the model for the next step, unless too many updates are on their way."""
        busy = self._pulling or self._compute_ns is not None
        if busy or (len(self._updates) >= self.job.ahead and not self._is_over):
            return
        self._pulling, self._pull, self._reads_last = True, None, self._is_over
        self._transfers += 1
        self.counters["pulls"] += 1
        asked = np.zeros(1, PULL)
        asked["transfer"], asked["since"] = self._transfers, self.store.version
        asked["whole_log"] = self._reads_last
        self.transport.send(self._server, Kind.PULL, asked.tobytes())

    def _ended(self, now_ns: int, step: int, outcome: int, version: int = 0) -> None:
        mine = self._account[step]
        mine["outcome"], mine["version"], mine["ended_ns"] = outcome, version, now_ns
        self._updates.pop(step, None)
        self._out["steps"] = self._step

    # Messages.

    def take(self, now_ns: int, message: Message) -> None:
        """Processes a message that belongs to the current run."""
        if message.epoch > self.transport.epoch:
            if len(self._early) < EARLY_MAX:  # until the scheduler's own word has come
                self._early.append(message)
        elif message.peer == self._scheduler:
            self._from_scheduler(now_ns, message)
        elif message.epoch != self.transport.epoch or message.peer != self._server:
            self.transport.is_late()
        elif message.kind == Kind.COMMIT:
            self._committed(now_ns, message)
        elif message.kind == Kind.NEED:
            self._needed(message)
        elif message.kind in (Kind.STATE, Kind.LOG):
            self._part(now_ns, message)
        else:
            self.transport.refuse()

    def _from_scheduler(self, now_ns: int, message: Message) -> None:
        if message.kind == Kind.GRANT:
            self._granted(now_ns, message)
        elif message.kind == Kind.DROP:
            dropped = np.frombuffer(message.body, DROP, 1)[0]
            outcome = OUTCOMES.get(int(dropped["reason"]), async_sgd.UNUSED)
            if outcome == async_sgd.UNUSED:
                self.transport.refuse()
            elif int(dropped["step"]) in self._updates:
                self._ended(now_ns, int(dropped["step"]), outcome)
                self._go_on()
        elif message.kind == Kind.OVER:
            self._over(now_ns, int(np.frombuffer(message.body, NUMBERS, 1)["version"][0]))
        else:
            self.transport.refuse()

    def _granted(self, now_ns: int, message: Message) -> None:
        grant = Grant.of(message.body, self.job.workers, self.store.chunks)
        mine = grant and next((m for m in grant.members if m.rank == self.job.rank), None)
        update = self._updates.get(mine.step) if mine else None
        if grant is None or mine is None:
            self.transport.refuse()
        elif update is None or update.grant is not None:
            self.transport.is_late()
        elif message.epoch != self.transport.epoch:
            update.grant = grant
            self._resolve(now_ns, update)
        else:
            update.grant = grant
            self._push_all(update, grant)

    def _push_all(self, update: Update, grant: Grant) -> None:
        """Sends the chunks of an update. Chunks in which other members of the group have values too
        are sent to be summed by the switch. The other chunks are sent to the server directly."""
        own, past_switch = 1 << self.job.rank, self.job.past_switch[grant.target]
        for chunk in update.member.chunks:
            together = grant.contributors(chunk) & ~past_switch
            alone = together & own == 0 or together == own
            self._push(update, grant, chunk, 0 if alone or not self.job.cells else together)

    def _push(self, update: Update, grant: Grant, chunk: int, together: int) -> None:
        """Sends one chunk of an update. together: the members of the group whose values the switch
        is to sum, as a number with a bit for each rank; 0 if the switch is not to sum."""
        head = np.zeros(1, PUSH)
        head["group"], head["members"] = grant.group, together or 1 << self.job.rank
        head["present"], head["chunk"] = 1 << self.job.rank, chunk
        if self.job.cells:
            place = grant.group * self.store.chunks + chunk
            head["cell"] = self.job.first_cell + place % self.job.cells
        body = head.tobytes() + update.values[chunk].astype(">i4").tobytes()
        if not together:
            self.transport.send(self._server, Kind.PUSH, body)
        else:
            self.counters["on_the_way"] += 1
            self.transport.send_once(self._server, Kind.SUMMED, body)

    def _needed(self, message: Message) -> None:
        """Sends the chunks of an update that the server lacks, because their sum did not come.
        Every member of the group then sends its own values."""
        asked = np.frombuffer(message.body, NEED, 1)[0]
        self.counters["repairs"] += len(chunks_in(asked["chunks"]))
        for update in self._updates.values():
            if update.grant and update.grant.group == int(asked["group"]):
                for chunk in chunks_in(asked["chunks"]):
                    if chunk in update.values:
                        self._push(update, update.grant, chunk, 0)

    def _committed(self, now_ns: int, message: Message) -> None:
        told = np.frombuffer(message.body, NUMBERS, 1)[0]
        for step, update in self._updates.items():
            if update.grant and update.grant.group == int(told["group"]):
                self._ended(now_ns, step, async_sgd.COMMITTED, update.grant.version)
                self.chunks_done = max(self.chunks_done, int(told["version"]))
                self._go_on()
                return
        self.transport.is_late()

    def _part(self, now_ns: int, message: Message) -> None:
        """Processes a packet of the model that this worker has requested. When the model is
        complete, begins to compute an update from it, or ends the run."""
        if not self._pulling:
            self.transport.is_late()
            return
        if self._pull is None:
            assembly = Assembly.of(message.body)
            other = assembly.transfer != self._transfers or assembly.since != self.store.version
            # A server that was started again has a model, too, but not the run's last one.
            if other or (self._reads_last and assembly.version != self._last_version):
                self.transport.is_late()
                return
            self._pull = assembly
        if not self._pull.take(message.kind, message.body, self.store.chunks):
            self.transport.is_late()
            return
        if not self._pull.is_whole:
            return
        assembly, self._pull, self._pulling = self._pull, None, False
        self.store.bring(assembly)
        self._read_epoch = self.transport.epoch
        if self._reads_last:
            self._finish(assembly)
        elif self._is_over:
            self._unfinished(now_ns)
            self._go_on()
        else:
            self._compute(now_ns)

    # Another server; the end.

    def another_server(self, now_ns: int, message: Message) -> None:
        """Processes the message that the replica has taken over, which may be about any run. If it
        is about this run, the worker decides which of its updates are committed: those that were
        granted up to the replica's version."""
        if message.epoch <= self.transport.epoch or message.epoch >= self.job.servers:
            self.transport.is_late()
            return
        self.transport.epoch = message.epoch
        if self.done or message.run != self.transport.run:
            return
        self._kept = int(np.frombuffer(message.body, NUMBERS, 1)["version"][0])
        gone = (self._account["outcome"] == async_sgd.COMMITTED) & (
            self._account["version"] > self._kept
        )
        self._account["outcome"][gone] = async_sgd.LOST
        for update in list(self._updates.values()):
            self._resolve(now_ns, update)
        if self.store.version > self._kept:
            self.store.clear()
            self._compute_ns = None
        self._pulling = False
        self._go_on()
        early, self._early = self._early, []
        for one in early:
            self.take(now_ns, one)

    def _resolve(self, now_ns: int, update: Update) -> None:
        """Decides what became of an update that was requested from a server that has been replaced,
        or that was computed from the model of such a server."""
        step = update.member.step
        if update.grant is not None and update.grant.version <= self._kept:
            self._ended(now_ns, step, async_sgd.COMMITTED, update.grant.version)
        elif update.grant is not None or update.member.read > self._kept:
            self._ended(now_ns, step, async_sgd.LOST)
        self._go_on()

    def _over(self, now_ns: int, version: int) -> None:
        """Notes that no more updates will be granted. Requests the last model and the log as soon
        as no other model is on its way. Does nothing if this is known already."""
        if self._is_over:
            return
        self._is_over, self._last_version = True, version
        if self._compute_ns is not None:
            self._compute_ns = None
            self._unfinished(now_ns)
        for step, update in list(self._updates.items()):
            if update.grant is None:
                self._ended(now_ns, step, async_sgd.OVER)
            else:
                self._ended(now_ns, step, async_sgd.COMMITTED, update.grant.version)
        self._go_on()

    def _unfinished(self, now_ns: int) -> None:
        """Notes in the account which model the worker has read for a step that it does not finish,
        because the run is over."""
        if self._step == self.work.steps_max:
            return
        step, self._step = self._step, self._step + 1
        mine = self._account[step]
        mine["read"], mine["epoch"] = self.store.version, self._read_epoch
        self._ended(now_ns, step, async_sgd.UNFINISHED)

    def _finish(self, assembly: Assembly) -> None:
        out = self._out
        out["model"][: self.store.elements] = self.store.model
        records = [record for _, found in assembly.records() for record in found]
        out["commits"] = len(records)
        for place, record in enumerate(records[: self.work.updates]):
            entry = out["log"][place]
            for name in RECORD.names or ():
                entry[name] = record[name]
            if record["replicated"] == NO_REPLICA:
                entry["replicated"] = -1
        self.done, self.chunks_done = True, self.chunks

    def tick(self, now_ns: int) -> None:
        """Ends the current step if its computing time is over."""
        if self._compute_ns is not None and now_ns >= self._compute_ns and not self.done:
            self._computed(now_ns)

    @property
    def deadline_ns(self) -> int:
        return NEVER_NS if self._compute_ns is None or self.done else self._compute_ns

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [step, group or 0] for each update on its way. If there are none, returns the
        number of the last transfer of a model."""
        found = [[s, u.grant.group if u.grant else 0] for s, u in self._updates.items()]
        return (found or [[self._transfers]])[:most]
