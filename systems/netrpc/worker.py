"""One worker of a NetRPC job as a state machine (README.md), which drivers use as
hosts/endpoint.py describes. In a round, the application of the service runs once. The round begins
when all workers have opened it, and ends when the application returns."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.agreement import PLAIN, Agreement, operation_name
from agglab.hosts.endpoint import NEVER_NS, Address, Inbox, Repeat
from agglab.hosts.errors import AllReduceError, RoundTimeout, ShapeMismatch, check_range
from agglab.hosts.recovery import Recovery, Timing
from agglab.hosts.slots import Job as Slots
from agglab.hosts.slots import check_finite
from agglab.systems.netrpc import wire
from agglab.systems.netrpc.caller import Caller, Rows, Window
from agglab.systems.netrpc.key_places import PlaceCache
from agglab.systems.netrpc.map_operation import CallPositions, MapOperation
from agglab.systems.netrpc.operations import (
    BarrierOperation,
    FailedOperation,
    OpeningOperation,
    Operation,
    PauseOperation,
    ReduceOperation,
)
from agglab.systems.netrpc.server import OWN_COUNTERS
from agglab.systems.netrpc.server import POSITIONS as SERVER_POSITIONS
from agglab.systems.netrpc.service import Application, Array, Service
from agglab.systems.netrpc.stubs import Barrier, MapAccess, Pause, Reduce, Stubs

DIGESTS = 4
WORKERS_MAX = 64
SWITCH, SERVER = 0, 1
"""The indices of the switch and the server among the peers. Only a service with maps has a
server."""


@dataclass(frozen=True)
class Job:
    """The settings on which all workers of a job have to agree. window: the number of calls that a
    worker has in flight to the switch. first_sequence: the session's first sequence number. Raises
    ValueError for numbers that do not fit the wire format."""

    job: int
    workers: int
    lanes: int
    window: int
    first_sequence: int
    service: type[Service]

    def __post_init__(self) -> None:
        check_range("job", self.job, 0, 65535)
        check_range("workers", self.workers, 1, WORKERS_MAX)
        check_range("lanes", self.lanes, 1, wire.MAX_LANES)
        least = 2 if self.service.maps() else 1
        check_range("window", self.window, least, wire.POSITIONS)
        check_range("first_sequence", self.first_sequence, 1, 2**32 - 1)

    @property
    def gather_positions(self) -> int:
        """The number of positions, from the first on, that are used for gathers, which all workers
        call in the same order. The order of a worker's other calls may differ between workers, so
        these calls use other positions."""
        if not self.service.maps():
            return self.window
        streams = any(m.argument == Array for m in self.service.methods)
        return max(1, self.window // 2) if streams else 1


class NetRpcWorker:
    """The state machine of one worker. All rounds use the same positions."""

    listens = False
    """False, because a switch answers only what a worker has asked."""

    def __init__(self, job: Job, timing: Timing, peers: Sequence[Address]) -> None:
        self.job, self.timing = job, timing
        self.peers = tuple(peers)
        self.longest_bytes = wire.longest_datagram_bytes(job.lanes)
        window, maps = job.window, job.service.maps()
        shared.check_count("peers", self.peers, 2 if maps else 1)
        to_server = SERVER_POSITIONS if maps else 0
        self._rows = Rows(
            np.repeat(np.array([SWITCH, SERVER], np.uint32), [window, to_server]), job.lanes
        )
        self.outbox = self._rows.outbox
        agreed = (job.job, job.workers, job.lanes, job.first_sequence, timing)
        self._switch = Caller(Window(*agreed, SWITCH, 0, window), self._rows)
        self._server = Caller(Window(*agreed, SERVER, window, to_server), self._rows)
        self._callers = (self._switch, self._server) if maps else (self._switch,)
        self._values_at, self._counters_at = PlaceCache(), PlaceCache()
        self._service = job.service()
        self._stubs = Stubs(job.service)
        self._application: Application | None = None
        self._operation: Operation | None = None
        self._opening: OpeningOperation | None = None
        self._inputs: NDArray = np.zeros(0, np.int32)
        self._out: NDArray = self._inputs
        self._sums: NDArray[np.int32] | None = None
        self._now_ns = 0
        self._rounds = 0
        self._answered = 0
        self._done = True
        self.agreement = PLAIN

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None = None
    ) -> None:
        """Begins a round (Endpoint.begin). values: the worker's input, which the application
        interprets. out: room for the application's result."""
        assert self.done, "a round is under way"
        job, self._now_ns = self.job, now_ns
        self._inputs, self._out, self._sums = values, out, sums
        self._switch.begin_round(now_ns, 0)
        self._server.begin_round(now_ns, job.first_sequence + self._rounds)
        digests = shape_digests(job, values.size, values.dtype, self._rounds, self.agreement)
        self._opening = OpeningOperation(self._switch, digests, job.workers, job.lanes)
        self._operation, self._done = self._opening, False
        self._application = self._service.run(self._stubs, values, out)
        self._rounds += 1
        self._answered = 0

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """See Endpoint.on_datagrams."""
        self._now_ns = now_ns
        taken = sum(caller.on_datagrams(now_ns, inbox) for caller in self._callers)
        self._answered += taken
        if taken:
            self._go_on()
        return taken

    def _go_on(self) -> None:
        """Continues the application as far as the answers that have come allow."""
        while self._operation is not None and self._operation.step():
            if self._operation is self._opening and not self._opening.agreed:
                self._operation = FailedOperation(self._mismatch())
                return
            result, self._operation = self._operation.result, None
            assert self._application is not None
            try:
                self._operation = self._perform(self._application.send(result))
            except StopIteration:
                self._application, self._done = None, True

    def _perform(self, wanted: object) -> Operation:
        if isinstance(wanted, Reduce):
            sums = self._sums if wanted.values is self._inputs else None
            return ReduceOperation(self._switch, wanted, self.job.gather_positions, sums)
        if isinstance(wanted, Barrier):
            return BarrierOperation(self._switch, wanted)
        if isinstance(wanted, Pause):
            return PauseOperation(lambda: self._now_ns, wanted)
        if isinstance(wanted, MapAccess):
            positions = (
                CallPositions(self._switch, self.job.gather_positions),
                CallPositions(self._server, 0),
            )
            return MapOperation(*positions, self._values_at, self._counters_at, wanted)
        name = type(self._service).__name__
        return FailedOperation(
            AllReduceError(f"{name}.run yielded {wanted!r}, which is not a call of the service")
        )

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """See Endpoint.poll."""
        self._now_ns = now_ns
        if isinstance(self._operation, PauseOperation):
            self._go_on()
        if isinstance(self._operation, FailedOperation):
            raise self._operation.error
        since_ns = max(caller.progress_ns for caller in self._callers)
        found = [caller.poll_since(now_ns, since_ns) for caller in self._callers]
        rows = [queued for queued in found if queued is not None]
        if len(rows) < len(found):
            raise self._timeout()
        used = [queued for queued in rows if queued.size]
        return np.concatenate(used) if len(used) > 1 else (used or rows)[0]

    def _mismatch(self) -> ShapeMismatch:
        job, inputs = self.job, self._inputs
        return ShapeMismatch(
            f"round {self._rounds - 1} of job {job.job}: this worker calls {job.service.__name__} "
            f"with {inputs.size} elements of {inputs.dtype}, workers {job.workers}, lanes "
            f"{job.lanes}, window {job.window}, operation "
            f"{operation_name(self.agreement.operation)}, another something else (such as another "
            "size, type or operation); all of a job have to do "
            "alike"
        )

    def _timeout(self) -> RoundTimeout:
        waiting = self.waiting(wire.POSITIONS)
        runs = shared.runs(sorted(entry[0] for entry in waiting))
        return RoundTimeout(
            f"no answer to calls {shared.words(runs)} of job {self.job.job} "
            f"after {self.timing.give_up_ns / 1e9:g} s",
            runs,
        )

    def repeats(self, row: int) -> Repeat | None:
        """See Endpoint.repeats."""
        call = self._rows.calls[row]
        if not call["attempt"]:
            return None
        number, first_sent_ns = int(call["sequence"]), int(call["first_sent_ns"])
        if row >= self.job.gather_positions:
            return Repeat(None, number, first_sent_ns)
        return Repeat(row, number, first_sent_ns, meets=not call["streams"])

    @property
    def packets(self) -> NDArray[np.void]:
        """The calls that the switch gathers, by position (hosts.endpoint.Packets)."""
        return self._rows.calls[: self.job.gather_positions]

    @property
    def deadline_ns(self) -> int:
        """See Endpoint.deadline_ns."""
        pause_ns = (
            self._operation.until_ns if isinstance(self._operation, PauseOperation) else NEVER_NS
        )
        return min(pause_ns, *(caller.deadline_ns for caller in self._callers))

    @property
    def done(self) -> bool:
        """See Endpoint.done."""
        return self._done

    @property
    def chunks(self) -> int:
        """The number of chunks of the array that is summed in this round. Without such an array, it
        is the number of calls so far."""
        return self._switch.chunks or self._answered + self.in_flight

    @property
    def chunks_done(self) -> int:
        """The number of chunks that are summed. Without an array to sum, it is the number of calls
        that are answered."""
        return self._switch.chunks_done if self._switch.chunks else self._answered

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The `Recovery` objects, from which hosts/recording.py reads round trips and latencies."""
        return tuple(caller.recovery for caller in self._callers)

    @property
    def in_flight(self) -> int:
        """The number of calls that wait for an answer."""
        return sum(caller.in_flight for caller in self._callers)

    @property
    def counters(self) -> Mapping[str, int]:
        """The counters by name (`shared.COUNTERS`, `OWN_COUNTERS`); they count from the creation of
        the worker."""
        each = [caller.counters for caller in self._callers]
        counted = {name: sum(counts[name] for counts in each) for name in shared.COUNTERS}
        return {**counted, **dict.fromkeys(OWN_COUNTERS, 0)}

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [chunk, position, sequence number, how often it was sent again] of calls that
        wait for an answer, at most `most` of them."""
        rows = np.flatnonzero(self._rows.calls["waiting"])[:most]
        calls = self._rows.calls[rows]
        columns = (calls["chunk"], rows, calls["sequence"], calls["attempt"])
        return [list(map(int, row)) for row in zip(*columns, strict=True)]

    def finish(self) -> None:
        """See Endpoint.finish."""
        assert self.done
        if self._inputs.dtype == np.float32 and self._switch.exponents.size:
            job = self.job
            named = Slots(job.job, job.workers, job.lanes, job.window, job.window)
            check_finite(named, self._switch.exponents, self._inputs, self._out)


def shape_digests(
    job: Job, elements: int, dtype: np.dtype, rounds: int, agreement: Agreement = PLAIN
) -> NDArray[np.int64]:
    """Returns numbers below 2^24 by which workers check that they begin the same round: they are
    equal at workers that do. elements, dtype: the number and type of values in the worker's input.
    `elements` has no influence if the service has maps, because each worker may then have another
    number of keys."""
    size = 0 if job.service.maps() else elements
    methods = repr(job.service.methods).encode()
    shape = struct.pack("!QIIIQ", size, job.workers, job.lanes, job.window, rounds)
    also = b"" if agreement == PLAIN else struct.pack("!I", agreement.number)
    digest = hashlib.sha256(shape + str(dtype).encode() + methods + also).digest()
    return np.frombuffer(digest[: 4 * DIGESTS], ">u4").astype(np.int64) >> 8
