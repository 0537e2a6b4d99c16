"""A server of Libra as a state machine (hosts/endpoint.py; README.md).

C code processes the packets (server.c, state.py). This module allocates the memory (NumPy arrays).
After a sample round, it chooses which keys are hot: which of them switches sum.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.endpoint import Address
from agglab.hosts.errors import check_range
from agglab.hosts.native_endpoint import NativeServer
from agglab.systems.libra import wire
from agglab.systems.libra.job import Keys, LibraJob, common_of, hottest, lowest_key
from agglab.systems.libra.state import COUNTED, LIBRARY, TIMED, Round, Server

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


class LibraServer(NativeServer):
    """The state machine of one server. Workers whose shapes differ are told so in the answer to
    each of their requests. peers: the addresses of all workers, by rank, and then the addresses to
    which answers for racks are sent."""

    COUNTERS = (*COUNTED, *OWN, *TIMED)

    def __init__(
        self, job: LibraJob, index: int, peers: Sequence[Address], room: TableSizes
    ) -> None:
        check_range("index", index, 0, job.servers - 1)
        shared.check_count("peers", peers, max(job.workers, len(peers)))
        self.job, self.index = job, index
        count, longest_bytes = (job.slots + 1) * job.workers, wire.datagram_bytes(job.lanes)
        outbox = shared.outbox_of(count, longest_bytes)
        pages = job.pages_of(index)
        self._hot_keys: Keys = np.full(pages * job.lanes, wire.NO_KEY, np.uint64)
        self._learnt: NDArray[np.uint8] = np.zeros(pages * job.workers, np.uint8)
        keys_max = max(1, room.keys if room.keeps else min(room.keys, job.workers * room.pairs))
        capacity = 1 << (2 * keys_max - 1).bit_length()
        self._tables: list[dict[str, NDArray]] = []
        chunks_max = -(-room.pairs // job.lanes) + 1
        each = (self._round_of(capacity, chunks_max, max(1, pages)) for _ in range(2))
        self._round_states = (Round * 2)(*each)
        assert not (room.keeps and job.hot), "what switches sum is in no store"
        self._store = self._round_of(capacity, 1, 1) if room.keeps else None
        racks = room.racks or tuple(Rack(rank, (rank,)) for rank in range(job.workers))
        masks = [sum(1 << rank for rank in rack.ranks) for rack in racks]
        state = Server(
            **common_of(job),
            lengths=outbox.lengths,
            peers=outbox.peers,
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
            rack_workers=np.array(masks, np.uint64),
            rack_peer=np.array([rack.peer for rack in racks], np.uint32),
            asked=np.zeros(count, np.uint8),
            waiting=np.zeros(count, np.uint32),
            waiting_attempt=np.zeros(count, np.uint8),
            hot_keys=self._hot_keys,
            learnt=self._learnt,
            round=2**32 - 1,
            hot_round=2**32 - 1,
        )
        native = LIBRARY.load()
        super().__init__(state, native, "libra_server", peers, outbox, longest_bytes, count)

    def _round_of(self, capacity: int, chunks_max: int, groups: int) -> Round:
        workers, lanes = self.job.workers, self.job.lanes
        chunks = workers * chunks_max
        arrays: dict[str, NDArray] = {
            "keys": np.zeros(capacity, np.uint64),
            "values": np.zeros(capacity, np.uint32),
            "counts": np.zeros(capacity, np.uint16),
            "chunks": np.zeros(workers, np.uint32),
            "arrived": np.zeros(workers, np.uint32),
            "pairs": np.zeros(chunks, np.uint16),
            "places": np.zeros(chunks * lanes, np.uint32),
            "group_keys": np.zeros(groups * lanes, np.uint64),
            "parts": np.zeros(groups * workers, np.uint64),
            "part_values": np.zeros(groups * workers * lanes, np.uint32),
            "whole": np.zeros(groups, np.uint8),
        }
        self._tables.append(arrays)
        return Round(**arrays)

    def act(self) -> None:
        """Ends a round in which all workers have pushed everything. If the round was a sample,
        chooses the keys that are hot from now on."""
        state = self.state
        state.needs_python = 0
        if not self.job.is_sample(state.round):
            return
        table = self._tables[state.round % 2]
        chosen = hottest(table["keys"], table["counts"], self.job.hot_of(self.index))
        self._hot_keys[:] = wire.NO_KEY
        self._hot_keys[: chosen.size] = chosen
        state.hot_pages = max(1, -(-chosen.size // self.job.lanes))
        self._learnt[:] = 0
        state.hot_round = state.round

    @property
    def chunks(self) -> int:
        """The number of workers that push in the latest round."""
        return self.job.workers if self.state.begun else 0

    @property
    def chunks_done(self) -> int:
        """The number of workers that have pushed everything."""
        return self._round_states[self.state.round % 2].workers_done if self.state.begun else 0

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [0, rank] for each worker whose pushes of the current round have not all come."""
        number = self.state.round % 2
        if not self.state.begun or self._round_states[number].workers_done == self.job.workers:
            return []
        chunks, arrived = self._tables[number]["chunks"], self._tables[number]["arrived"]
        missing = np.flatnonzero((chunks == 0) | (arrived < chunks)).tolist()
        return [[0, rank] for rank in missing[:most]]
