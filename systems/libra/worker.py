"""A worker of Libra as a state machine (hosts/endpoint.py; README.md).

C code processes the packets (worker.c, state.py). This module allocates the memory (NumPy arrays)
and writes the error messages. It divides the keys of a round among the servers, and into hot and
cold keys. Times are integers, nanoseconds of any monotonic clock.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.endpoint import Address, Repeat
from agglab.hosts.errors import AllReduceError, RoundTimeout, ShapeMismatch, check_range
from agglab.hosts.native_endpoint import NativeWorker
from agglab.hosts.recovery import Pending, Recovery, Timing
from agglab.hosts.structures import U32, Structure, dtype_of, structure
from agglab.systems.libra import wire
from agglab.systems.libra.job import (
    NO_KEYS,
    Keys,
    LibraJob,
    bounds,
    common_of,
    from_fixed,
    to_fixed,
)
from agglab.systems.libra.state import (
    COUNTED,
    HOT,
    LIBRARY,
    NO_AGGREGATOR,
    PHASES,
    PULL,
    REQUEST,
    TIMED,
    Share,
    Worker,
)

DIRECT_AFTER = 2
"""The number of attempts after which a request goes to the server and not to the switch."""


@structure("libra_step")
class Step(Structure):
    """How far a worker is with a server, in the form of hosts.endpoint.Packets."""

    pending: Pending
    step: U32
    spare_word: U32


STEP = dtype_of(Step)
PHASE_NAMES = ("hot groups", "pushes", "pulls", "lists of hot keys")


class LibraWorker(NativeWorker):
    """The state machine of one worker. peers: the addresses of all servers, by index, and then that
    of the switch, if there are hot keys."""

    COUNTERS = (*COUNTED, *TIMED, "streams", "directly", "bytes_again")

    def __init__(
        self, job: LibraJob, rank: int, peers: Sequence[Address], timing: Timing = Timing()
    ) -> None:
        check_range("rank", rank, 0, job.workers - 1)
        shared.check_count("peers", peers, job.servers + (job.hot > 0))
        self.job = job
        self._timing, self._rounds = timing, 0
        window, longest_bytes = job.slots * job.servers, wire.datagram_bytes(job.lanes)
        outbox = shared.outbox_of(window, longest_bytes)
        self._requests: NDArray[np.void] = np.zeros(window, REQUEST)
        self._shares = (Share * job.servers)()
        self._hot: list[Keys] = [NO_KEYS] * job.servers
        self._learnt: list[Keys] = []
        self._round: _Round | None = None
        self._refusal: AllReduceError | None = None
        state = Worker(
            **common_of(job),
            lengths=outbox.lengths,
            peers=outbox.peers,
            requests=self._requests,
            shares=ctypes.addressof(self._shares),
            rank=rank,
            aggregator=job.servers if job.hot else NO_AGGREGATOR,
            direct_after=DIRECT_AFTER,
            hold_ns=timing.initial_rto_ns,
        )
        native, rows = LIBRARY.load(), 2 * window
        super().__init__(state, native, "libra_worker", peers, outbox, longest_bytes, rows)
        recoveries = [Recovery.of(timing) for _ in range(PHASES * job.servers)]
        self.wait_for_answers(recoveries, self._requests, wire.HEADER)
        self.head.path_count = job.servers

    def begin(
        self,
        now_ns: int,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None = None,
    ) -> None:
        """Starts the next round: pushes `values` and pulls the sum for each key into `out`.
        `values` is a structured array with the fields `key` (uint64, ascending, each once) and
        `value`. `out` has the length and dtype of the field `value`. `sums` is not changed. Raises
        ValueError for keys that are not as described."""
        assert self.done, "a round is under way"
        _check_keys(values["key"])
        job, state, number = self.job, self.state, self._rounds
        self._rounds += 1
        assert values["value"].dtype == (np.float32 if job.is_float else np.int32)
        self._adopt()
        sample = job.is_sample(number)
        hot = [NO_KEYS] * job.servers if sample else self._hot
        self._learnt = [
            np.full(job.pages_of(server) * job.lanes if sample else 0, wire.NO_KEY, np.uint64)
            for server in range(job.servers)
        ]
        try:
            integers = to_fixed(values["value"], job) if job.is_float else values["value"]
        except AllReduceError as refusal:
            self._refusal, state.deadline_ns, state.done = refusal, now_ns, 0
            state.error = errno.EDOM
            return
        self._round = _Round(job, hot, np.ascontiguousarray(values["key"]), integers, out)
        for server in range(job.servers):
            self._shares[server] = self._round.share(server, self._learnt[server])
        state.digest = job.digest(hot)
        state.round = number % 2**32
        self._begin(self._address, now_ns)

    def _adopt(self) -> None:
        """Replaces the hot keys by those that the servers announced after the last sample."""
        for server, keys in enumerate(self._learnt):
            if keys.size:
                self._hot[server] = keys[keys != np.uint64(wire.NO_KEY)]

    @property
    def hot(self) -> Keys:
        """The hot keys of the latest round, in any order."""
        return np.concatenate(self._round.hot) if self._round else NO_KEYS

    def _count(self, name: str) -> int:
        """See NativeEndpoint.counters."""
        if name != "streams":
            return super()._count(name)
        return (1 if self.job.hot else self.job.servers) if self._rounds else 0

    def repeats(self, row: int) -> Repeat | None:
        """Returns the number of the request in row `row` if it is sent again. Returns None if it is
        sent for the first time."""
        request = self._requests[row]
        if not request["attempt"]:
            return None
        phase = self._shares[row % self.job.servers].phase
        gathered = phase in (HOT, PULL)
        first_ns = int(request["first_sent_ns"])
        if phase == PULL:
            server = row % self.job.servers
            step = int(self.packets["step"][server])
            return Repeat(server, step, first_ns, gathered=True, meets=True)
        return Repeat(None, int(request["item"]), first_ns, gathered=gathered)

    @property
    def packets(self) -> NDArray[np.void]:
        """How far the worker is with each server, in the form of hosts.endpoint.Packets: a server
        answers the first pulls when all workers have reached this step."""
        steps = np.zeros(self.job.servers, STEP)
        phases = [self._shares[server].phase for server in range(self.job.servers)]
        steps["step"] = (self._rounds * PHASES + np.array(phases)) % 2**32
        return steps

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [number of the request, server, phase] for requests that wait for an answer, at
        most `most` of them."""
        found = np.flatnonzero(self._requests["waiting"]).tolist()[:most]
        servers = self.job.servers
        return [
            [int(self._requests["item"][row]), row % servers, self._shares[row % servers].phase]
            for row in found
        ]

    def finish(self) -> None:
        """Writes the sums into the array `out` that `begin` was given."""
        assert self.done
        if self._round:
            self._round.finish()

    def failure(self, error: int) -> AllReduceError:
        """See NativeWorker.failure. A round may also have a value that fixed point cannot
        hold."""
        return self._refusal or super().failure(error)

    def mismatch(self) -> ShapeMismatch:
        job, state = self.job, self.state
        return ShapeMismatch(
            f"round {self._rounds - 1} of job {job.job}: this worker has workers {job.workers},"
            f" servers {job.servers}, lanes {job.lanes}, window {job.window}, hot {job.hot} and"
            f" its hot keys (digest {state.digest:08x}), another or a server something else "
            f"(digest {state.other_digest:08x}); all of a job have to agree"
        )

    def timeout(self) -> RoundTimeout:
        missing = self.waiting(len(self._requests))
        servers = sorted({server for _, server, _ in missing})
        phases = sorted({phase for _, _, phase in missing})
        what = " and ".join(PHASE_NAMES[phase] for phase in phases)
        ranges = shared.runs(sorted({item for item, _, _ in missing}))
        return RoundTimeout(
            f"no answer for {what} {shared.words(ranges)} of job {self.job.job} from servers "
            f"{shared.words(shared.runs(servers))} after {self._timing.give_up_ns / 1e9:g} s",
            ranges,
        )


class _Round:
    """The keys of one round, divided among the servers, and into hot keys, which switches sum, and
    cold keys. hot: the hot keys of each server."""

    def __init__(
        self,
        job: LibraJob,
        hot: Sequence[Keys],
        keys: Keys,
        values: NDArray[np.int32],
        out: NDArray,
    ) -> None:
        self.job, self.hot = job, hot
        self._out = out
        laid_out = [_padded(of_server, job.lanes) for of_server in hot]
        self._hot_keys: Keys = np.concatenate(laid_out)
        self._hot_at = np.cumsum([0, *(each.size for each in laid_out)])
        self._is_hot, self._places = _find(self._hot_keys, keys)
        self._hot_values = np.zeros(self._hot_keys.size, np.int32)
        self._hot_values[self._places] = values[self._is_hot]
        self._cold_keys = keys[~self._is_hot]
        self._cold_values: NDArray[np.int32] = values[~self._is_hot]
        self._cold_at = bounds(self._cold_keys, job.servers)
        self._hot_sums = np.zeros_like(self._hot_values)
        self._cold_sums = np.zeros_like(self._cold_values)

    def share(self, server: int, learnt: Keys) -> Share:
        """Returns the structure for the requests to one server. learnt: room for the hot keys that
        the server announces after a sample."""
        lanes = self.job.lanes
        hot, cold = int(self._hot_at[server]), int(self._cold_at[server])
        pairs = int(self._cold_at[server + 1]) - cold
        groups = (int(self._hot_at[server + 1]) - hot) // lanes
        chunks = max(1, -(-pairs // lanes))
        return Share(
            hot_keys=_from(self._hot_keys, hot),
            hot_values=_from(self._hot_values, hot),
            hot_sums=_from(self._hot_sums, hot),
            cold_keys=_from(self._cold_keys, cold),
            cold_values=_from(self._cold_values, cold),
            cold_sums=_from(self._cold_sums, cold),
            learnt=learnt.ctypes.data,
            cold_pairs=pairs,
            items=(groups, chunks, chunks, 1 if learnt.size else 0),
            pages_max=learnt.size // lanes,
        )

    def finish(self) -> None:
        """Writes the sums into `out`."""
        sums = np.empty(self._out.size, np.int32)
        sums[self._is_hot] = self._hot_sums[self._places]
        sums[~self._is_hot] = self._cold_sums
        self._out[:] = from_fixed(sums, self.job) if self.job.is_float else sums


def _from(array: NDArray, at: int) -> int:
    address: int = array.ctypes.data
    return address + at * array.itemsize


def _padded(keys: Keys, lanes: int) -> Keys:
    """Returns the keys, followed by as many NO_KEY as make whole groups of `lanes` keys."""
    padded: Keys = np.full(-(-keys.size // lanes) * lanes, wire.NO_KEY, np.uint64)
    padded[: keys.size] = keys
    return padded


def _find(hot: Keys, keys: Keys) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Returns, for each of `keys`, whether it is hot. Also returns the positions of the hot ones
    among them in `hot`."""
    order = np.argsort(hot)
    found = np.searchsorted(hot, keys, sorter=order)
    places = order[np.minimum(found, hot.size - 1)] if hot.size else np.zeros(keys.size, np.intp)
    is_hot = hot[places] == keys if hot.size else np.zeros(keys.size, np.bool_)
    return is_hot, places[is_hot]


def _check_keys(keys: Keys) -> None:
    """Raises ValueError unless the keys ascend and each occurs only once. Also raises it for
    NO_KEY."""
    if keys.size and (keys[1:] <= keys[:-1]).any():
        raise ValueError("keys must be in ascending order, without repetitions")
    if keys.size and keys[-1] == np.uint64(wire.NO_KEY):
        raise ValueError(f"{wire.NO_KEY} cannot be a key")
