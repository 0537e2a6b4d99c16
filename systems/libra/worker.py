"""A worker of Libra as a state machine (hosts/endpoint.py; README.md).

C code processes the packets (worker.c). This module allocates the memory (NumPy arrays) and writes
the error messages. It divides the keys of a round among the servers, and into hot and cold keys.
Times are integers, nanoseconds of any monotonic clock.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.endpoint import Address, Inbox, Outbox, Repeat
from agglab.hosts.errors import AllReduceError, RoundTimeout, ShapeMismatch, check_range
from agglab.hosts.recovery import PENDING, Recovery, Timing
from agglab.systems.libra import layout, wire
from agglab.systems.libra.job import (
    NO_KEYS,
    Keys,
    LibraJob,
    bounds,
    from_fixed,
    to_fixed,
)
from agglab.systems.libra.memory import common_of, rows

DIRECT_AFTER = 2
"""The number of attempts after which a request goes to the server and not to the switch."""
STEP = np.dtype([*PENDING, ("step", np.uint32)])
PHASE_NAMES = ("hot groups", "pushes", "pulls", "lists of hot keys")


class LibraWorker:
    """The state machine of one worker. peers: the addresses of all servers, by index, and then that
    of the switch, if there are hot keys."""

    listens = False
    """False, because a server answers only what a worker has asked."""

    def __init__(
        self, job: LibraJob, rank: int, peers: Sequence[Address], timing: Timing = Timing()
    ) -> None:
        check_range("rank", rank, 0, job.workers - 1)
        shared.check_count("peers", peers, job.servers + (job.hot > 0))
        self.job, self.peers = job, tuple(peers)
        self.longest_bytes = wire.datagram_bytes(job.lanes)
        self._native = layout.load()
        self._timing, self._rounds = timing, 0
        window = job.slots * job.servers
        self.outbox = Outbox(
            rows(job.lanes, window), np.zeros(window, np.uint32), np.zeros(window, np.uint32)
        )
        self._requests: NDArray[np.void] = np.zeros(window, layout.REQUEST)
        self._queue: NDArray[np.uint32] = np.zeros(2 * window, np.uint32)
        count = layout.PHASES * job.servers
        self._recoveries = (Recovery * count)(*(Recovery.of(timing) for _ in range(count)))
        self._rtts_ns: NDArray[np.int64] = np.zeros(count, np.int64)
        self._shares = (layout.Share * job.servers)()
        self._hot: list[Keys] = [NO_KEYS] * job.servers
        self._learnt: list[Keys] = []
        self._round: _Round | None = None
        self._refusal: AllReduceError | None = None
        self._state = layout.Worker(
            common=common_of(job, self.outbox, self._queue),
            recoveries=ctypes.addressof(self._recoveries),
            rtts_ns=self._rtts_ns.ctypes.data,
            requests=self._requests.ctypes.data,
            shares=ctypes.addressof(self._shares),
            rank=rank,
            aggregator=job.servers if job.hot else layout.NO_AGGREGATOR,
            direct_after=DIRECT_AFTER,
            hold_ns=timing.initial_rto_ns,
        )
        self._address = ctypes.addressof(self._state)

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
        job, state, number = self.job, self._state, self._rounds
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
            self._refusal, state.deadline_ns = refusal, now_ns
            return
        self._round = _Round(job, hot, np.ascontiguousarray(values["key"]), integers, out)
        for server in range(job.servers):
            self._shares[server] = self._round.share(server, self._learnt[server])
        state.digest = job.digest(hot)
        state.round = number % 2**32
        self._native.libra_worker_begin(self._address, now_ns)

    def _adopt(self) -> None:
        """Replaces the hot keys by those that the servers announced after the last sample."""
        for server, keys in enumerate(self._learnt):
            if keys.size:
                self._hot[server] = keys[keys != np.uint64(wire.NO_KEY)]

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`. Returns how many of them the endpoint had waited for.
        The caller must call `poll` next."""
        return self._native.libra_worker_datagrams(
            self._address, now_ns, *inbox.payloads_and_peers, inbox.count
        )

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now, and sets `deadline_ns`. The returned array is
        valid until the next call. Raises RoundTimeout, ShapeMismatch, and AllReduceError for a
        value that fixed point cannot hold."""
        if self._refusal:
            raise self._refusal
        count = self._native.libra_worker_poll(self._address, now_ns)
        if count < 0:
            raise self._failure(-count)
        return self._queue[:count]

    @property
    def deadline_ns(self) -> int:
        """The time at which `poll` must be called even if no datagram has come. It is the largest
        int64 if there is no such time."""
        return self._state.deadline_ns

    @property
    def done(self) -> bool:
        """Whether all sums have come, or no round has begun."""
        over = self._state.items_done == self._state.items
        return over and not self._state.disagreed and self._refusal is None

    @property
    def chunks(self) -> int:
        """The number of requests of the round."""
        return self._state.items

    @property
    def chunks_done(self) -> int:
        """The number of requests that are answered."""
        return self._state.items_done

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """The `Recovery` objects, from which hosts/recording.py reads round trips and latencies."""
        return tuple(self._recoveries)

    @property
    def in_flight(self) -> int:
        """The number of requests that wait for an answer."""
        return sum(recovery.in_flight for recovery in self._recoveries)

    @property
    def hot(self) -> Keys:
        """The hot keys of the latest round, in any order."""
        return np.concatenate(self._round.hot) if self._round else NO_KEYS

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`shared.COUNTERS`, counters.py), counted from the creation of the
        endpoint."""
        state = self._state
        own = {name: getattr(state, name) for name in layout.COMMON_COUNTERS}
        for name in ("retransmitted", "timeouts"):
            own[name] = sum(getattr(recovery, name) for recovery in self._recoveries)
        streams = 1 if self.job.hot else self.job.servers
        return {
            **own,
            "streams": streams if self._rounds else 0,
            "directly": state.directly,
            "bytes_again": state.bytes_again,
        }

    def repeats(self, row: int) -> Repeat | None:
        """Returns the number of the request in row `row` if it is sent again. Returns None if it is
        sent for the first time."""
        request = self._requests[row]
        if not request["attempt"]:
            return None
        phase = self._shares[row % self.job.servers].phase
        gathered = phase in (layout.HOT, layout.PULL)
        first_ns = int(request["first_sent_ns"])
        if phase == layout.PULL:
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
        steps["step"] = (self._rounds * layout.PHASES + np.array(phases)) % 2**32
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

    def _failure(self, error: int) -> AllReduceError:
        job, state = self.job, self._state
        if error == errno.EPROTO:
            return ShapeMismatch(
                f"round {self._rounds - 1} of job {job.job}: this worker has workers {job.workers},"
                f" servers {job.servers}, lanes {job.lanes}, window {job.window}, hot {job.hot} and"
                f" its hot keys (digest {state.digest:08x}), another or a server something else "
                f"(digest {state.other_digest:08x}); all of a job have to agree"
            )
        assert error == errno.ETIMEDOUT
        missing = self.waiting(len(self._requests))
        servers = sorted({server for _, server, _ in missing})
        phases = sorted({phase for _, _, phase in missing})
        what = " and ".join(PHASE_NAMES[phase] for phase in phases)
        ranges = shared.runs(sorted({item for item, _, _ in missing}))
        return RoundTimeout(
            f"no answer for {what} {shared.words(ranges)} of job {job.job} from servers "
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

    def share(self, server: int, learnt: Keys) -> layout.Share:
        """Returns the structure for the requests to one server. learnt: room for the hot keys that
        the server announces after a sample."""
        lanes = self.job.lanes
        hot, cold = int(self._hot_at[server]), int(self._cold_at[server])
        pairs = int(self._cold_at[server + 1]) - cold
        groups = (int(self._hot_at[server + 1]) - hot) // lanes
        chunks = max(1, -(-pairs // lanes))
        return layout.Share(
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
