"""A server of Libra as a state machine (hosts/endpoint.py; README.md).

C code processes the packets (server.c). This module allocates the memory (NumPy arrays). After a
sample round, it chooses which keys are hot: which of them switches sum.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.endpoint import NEVER_NS, Address, Inbox, Outbox, Repeat
from agglab.hosts.errors import check_range
from agglab.systems.libra import layout, wire
from agglab.systems.libra.job import Keys, LibraJob, hottest, lowest_key
from agglab.systems.libra.memory import common_of, rows

OWN = ("answered_again", "bytes_again", "groups_whole", "sums", "singles", "cold_pairs")


@dataclass(frozen=True)
class Rack:
    """The workers behind one switch that sums. ranks: the ranks of these workers. peer: the index
    in the server's `peers` of the address that gets the answers for all of them."""

    peer: int
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class TableSizes:
    """The sizes of a server's tables.

    keys: the number of different keys in a round. pairs: the number of keys that one worker pushes.
    racks: the racks of the workers; without racks, every worker gets its own answers. keeps:
    whether sums are kept from round to round; then `keys` is the number of different keys in all
    rounds.
    """

    keys: int
    pairs: int
    racks: tuple[Rack, ...] = ()
    keeps: bool = False


class LibraServer:
    """The state machine of one server. It only answers the requests of workers, and has neither
    rounds nor timers. peers: the addresses of all workers, by rank, and then the addresses to which
    answers for racks are sent."""

    listens = True
    done = True
    deadline_ns = NEVER_NS
    in_flight = 0

    def __init__(
        self, job: LibraJob, index: int, peers: Sequence[Address], room: TableSizes
    ) -> None:
        check_range("index", index, 0, job.servers - 1)
        shared.check_count("peers", peers, max(job.workers, len(peers)))
        self.job, self.index, self.peers = job, index, tuple(peers)
        self.longest_bytes = wire.datagram_bytes(job.lanes)
        self._native = layout.load()
        count = (job.slots + 1) * job.workers
        lengths, towards = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
        self.outbox = Outbox(rows(job.lanes, count), lengths, towards)
        self._queue: NDArray[np.uint32] = np.zeros(count, np.uint32)
        self._memory: list[NDArray] = []
        pages = job.pages_of(index)
        self._hot_keys: Keys = np.full(pages * job.lanes, wire.NO_KEY, np.uint64)
        self._learnt: NDArray[np.uint8] = np.zeros(pages * job.workers, np.uint8)
        keys_max = max(1, room.keys if room.keeps else min(room.keys, job.workers * room.pairs))
        capacity = 1 << (2 * keys_max - 1).bit_length()
        self._tables: list[tuple[Keys, NDArray[np.uint16]]] = []
        chunks_max = -(-room.pairs // job.lanes) + 1
        each = (self._round_of(capacity, chunks_max, max(1, pages)) for _ in range(2))
        self._round_states = (layout.Round * 2)(*each)
        assert not (room.keeps and job.hot), "what switches sum is in no store"
        self._store = self._round_of(capacity, 1, 1) if room.keeps else None
        racks = room.racks or tuple(Rack(rank, (rank,)) for rank in range(job.workers))
        masks = [sum(1 << rank for rank in rack.ranks) for rack in racks]
        self._state = layout.Server(
            common=common_of(job, self.outbox, self._queue),
            index=index,
            capacity=capacity,
            keys_max=keys_max,
            chunks_max=chunks_max,
            groups_max=max(1, pages),
            racks=len(racks),
            low_key=lowest_key(job.servers, index),
            high_key=lowest_key(job.servers, index + 1) - 1,
            rounds=ctypes.addressof(self._round_states),
            store=ctypes.addressof(self._store) if self._store else None,
            rack_workers=self._kept(np.array(masks, np.uint64)),
            rack_peer=self._kept(np.array([rack.peer for rack in racks], np.uint32)),
            asked=self._kept(np.zeros(count, np.uint8)),
            waiting=self._kept(np.zeros(count, np.uint32)),
            waiting_attempt=self._kept(np.zeros(count, np.uint8)),
            hot_keys=self._hot_keys.ctypes.data,
            learnt=self._learnt.ctypes.data,
            round=2**32 - 1,
            hot_round=2**32 - 1,
        )
        self._address = ctypes.addressof(self._state)

    def _kept(self, array: NDArray) -> int:
        """Returns the array's address in memory, and keeps the array alive as long as the server
        exists."""
        self._memory.append(array)
        address: int = array.ctypes.data
        return address

    def _round_of(self, capacity: int, chunks_max: int, groups: int) -> layout.Round:
        workers, lanes = self.job.workers, self.job.lanes
        chunks = workers * chunks_max
        keys, counts = np.zeros(capacity, np.uint64), np.zeros(capacity, np.uint16)
        self._tables.append((keys, counts))
        return layout.Round(
            keys=self._kept(keys),
            values=self._kept(np.zeros(capacity, np.uint32)),
            counts=self._kept(counts),
            chunks=self._kept(np.zeros(workers, np.uint32)),
            arrived=self._kept(np.zeros(workers, np.uint32)),
            pairs=self._kept(np.zeros(chunks, np.uint16)),
            places=self._kept(np.zeros(chunks * lanes, np.uint32)),
            group_keys=self._kept(np.zeros(groups * lanes, np.uint64)),
            parts=self._kept(np.zeros(groups * workers, np.uint64)),
            part_values=self._kept(np.zeros(groups * workers * lanes, np.uint32)),
            whole=self._kept(np.zeros(groups, np.uint8)),
        )

    def begin(
        self,
        now_ns: int,
        values: NDArray,
        out: NDArray,
        sums: NDArray[np.int32] | None = None,
    ) -> None:
        """Raises TypeError, because a server pushes nothing."""
        raise TypeError("a server begins no round: it serves whatever the workers begin")

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """Processes the datagrams in `inbox`. Returns how many of them the endpoint had waited for.
        The caller must call `poll` next."""
        awaited: int = self._native.libra_server_datagrams(
            self._address, *inbox.payloads_and_peers, inbox.count
        )
        if self._state.choose:
            self._round_over()
        return awaited

    def _round_over(self) -> None:
        """Ends a round in which all workers have pushed everything. If the round was a sample,
        chooses the keys that are hot from now on."""
        state = self._state
        state.choose = 0
        if not self.job.is_sample(state.round):
            return
        keys, counts = self._tables[state.round % 2]
        chosen = hottest(keys, counts, self.job.hot_of(self.index))
        self._hot_keys[:] = wire.NO_KEY
        self._hot_keys[: chosen.size] = chosen
        state.hot_pages = max(1, -(-chosen.size // self.job.lanes))
        self._learnt[:] = 0
        state.hot_round = state.round

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """Returns the rows of the outbox to send now. The returned array is valid until the next
        call. This method never raises an exception. Workers whose shapes differ are told so in the
        answer to each of their requests."""
        return self._queue[: self._native.libra_server_poll(self._address)]

    @property
    def chunks(self) -> int:
        """The number of workers that push in the latest round."""
        return self.job.workers if self._state.begun else 0

    @property
    def chunks_done(self) -> int:
        """The number of workers that have pushed everything."""
        return self._round_states[self._state.round % 2].workers_done if self._state.begun else 0

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name (`shared.COUNTERS`, counters.py), counted from the creation of the
        endpoint."""
        names = (*layout.COMMON_COUNTERS, *OWN)
        return {**{name: getattr(self._state, name) for name in names}, **NO_TIMERS}

    def repeats(self, row: int) -> Repeat | None:
        """Returns None, because a server repeats an answer only when a worker repeats its
        request."""
        return None

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [0, rank] for each worker whose pushes of the current round have not all come."""
        state = self._round_states[self._state.round % 2]
        if not self._state.begun or state.workers_done == self.job.workers:
            return []
        chunks, arrived = (self._column(address) for address in (state.chunks, state.arrived))
        missing = np.flatnonzero((chunks == 0) | (arrived < chunks)).tolist()
        return [[0, rank] for rank in missing[:most]]

    def _column(self, address: int) -> NDArray[np.uint32]:
        """Returns the array of numbers, one for each worker, that is at this address in memory."""
        kept = next(array for array in self._memory if array.ctypes.data == address)
        return kept.view(np.uint32)

    def finish(self) -> None:
        """Does nothing, because a server has no result."""


NO_TIMERS = {"retransmitted": 0, "timeouts": 0}
