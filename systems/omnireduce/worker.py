"""One OmniReduce worker as a state machine (README.md), which drivers use as
hosts/endpoint.py describes.

C code processes the packets (omnireduce.c, state.py). This module allocates the memory (NumPy
arrays), starts and ends rounds, and writes the error messages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import quantise, shared
from agglab.hosts.agreement import PLAIN
from agglab.hosts.endpoint import Address, Repeat
from agglab.hosts.errors import AllReduceError, check_range
from agglab.hosts.native_endpoint import NativeEndpoint
from agglab.hosts.recovery import Recovery, Timing
from agglab.hosts.slot_rounds import SlotRounds
from agglab.hosts.slots import Job
from agglab.hosts.wire import AGGREGATOR
from agglab.systems.omnireduce import wire
from agglab.systems.omnireduce.state import COLUMN, LIBRARY, OmniReducerState

OWN_COUNTERS = {
    "blocks_sent": (
        "blocks",
        "blocks whose values a worker sent; a block that is sent again counts once",
    ),
    "blocks_bare": (
        "blocks",
        "blocks in which a worker had nothing, so that it sent only headers",
    ),
    "blocks_skipped": (
        "blocks",
        "blocks that no worker sent, because all of them had nothing there",
    ),
    "blocks_fused": (
        "blocks",
        "blocks of `blocks_bare` that were sent as entries of other packets",
    ),
    "openings_fused": (
        "columns",
        "columns whose first packet was sent as an entry of another packet",
    ),
}
"""The counters that this system's workers have besides `shared.COUNTERS`. Each block of a round is
counted in exactly one of the first three."""


class OmniReducer(NativeEndpoint):
    """The state machine of one worker. All rounds use the same slots, and the tags continue from
    round to round."""

    COUNTERS = (*shared.COUNTERS, *OWN_COUNTERS)

    def __init__(
        self,
        job: Job,
        timing: Timing = Timing(),
        aggregator: Address = AGGREGATOR,
        longest_bytes: int = 0,
    ) -> None:
        """Makes the worker. longest_bytes: the length of the longest datagram that the path allows,
        or 0 if only the system limits it."""
        check_range("lanes", job.lanes, 1, wire.MAX_LANES)
        self.job, self.timing = job, timing
        longest_bytes = wire.longest_datagram_bytes(job.lanes, longest_bytes)
        self.columns: NDArray[np.void] = np.zeros(job.window, COLUMN)
        self.columns["tag"] = (job.first_tag - 1) % 2**32
        rows = job.window + job.window // 2  # each column's own, and those of at least two columns
        outbox = shared.outbox_of(rows, longest_bytes)
        outbox.lengths[:] = 0
        state = OmniReducerState(
            job=job.job,
            lanes=job.lanes,
            window=job.window,
            value_bits=quantise.value_bits(job.workers),
            columns=self.columns,
            ready=np.zeros(job.window, np.uint32),
            opening_entries=wire.entries_behind(longest_bytes, wire.OPENING_BYTES),
            bare_entries=wire.entries_behind(longest_bytes, wire.HEADER_BYTES),
            values_entries=wire.entries_behind(longest_bytes, wire.full_bytes(job.lanes)),
        )
        native, peers = LIBRARY.load(), (aggregator,)
        super().__init__(state, native, "omnireduce", peers, outbox, longest_bytes, job.window)
        recoveries = [Recovery.of(timing)]
        self.wait_for_answers(recoveries, self.columns, wire.HEADER, rows_are_slots=True)
        self.rounds = SlotRounds(job, state, self.columns, "block")
        self.agreement = PLAIN

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None = None
    ) -> None:
        """See Endpoint.begin."""
        assert self.done, "a round is under way"
        self.rounds.begin(values, out, sums, self.agreement)
        assert self.chunks < wire.NO_BLOCK
        is_float = values.dtype == np.float32
        self.state.kind = wire.Kind.SCALED if is_float else wire.Kind.INT32
        self._begin(self._address, now_ns)

    def others(self, datagram: bytes) -> list[tuple[int, int]]:
        """Returns the slot and the tag of each entry of a fused packet (hosts.endpoint.Others)."""
        found = wire.entries(datagram, self.job.lanes)
        return list(zip(found["slot"].tolist(), found["tag"].tolist(), strict=True))

    def failure(self, error: int) -> AllReduceError:
        """See NativeEndpoint.failure."""
        return self.rounds.failure(error, self.timing.give_up_ns)

    def repeats(self, row: int) -> Repeat | None:
        """Does what Endpoint.repeats describes. Packets that are sent again are never fused."""
        if row >= self.job.window:
            return None
        column = self.columns[row]
        if not column["attempt"]:
            return None
        return Repeat(row, int(column["tag"]), int(column["first_sent_ns"]))

    @property
    def packets(self) -> NDArray[np.void]:
        """The packets by column (hosts.endpoint.Packets)."""
        return self.columns

    def waiting(self, most: int) -> list[list[int]]:
        """Returns [block, slot, tag, how often it was sent again] of columns that wait for a
        result, at most `most` of them."""
        return self.rounds.waiting(most)

    def finish(self) -> None:
        """See Endpoint.finish."""
        assert self.done
        self.rounds.finish()
