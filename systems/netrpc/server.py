"""The server of a service with maps, as a state machine (README.md, "Keys and
places"). It allocates places. For keys that get no place, it does the work that switches do for the
other keys. Each call is executed once: the server keeps its answer until the caller's next call at
the same position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import shared
from agglab.hosts.endpoint import NEVER_NS, Address, Inbox, Outbox, Repeat
from agglab.hosts.wire import LOWER_HEADER_BYTES, RESULT, VERSION
from agglab.systems.netrpc import wire
from agglab.systems.netrpc.key_places import UNUSED, PlaceAllocator
from agglab.systems.netrpc.map_operation import PLACE_COUNTERS, PLACE_VALUES
from agglab.systems.netrpc.service import COUNTER, VALUES, Method, Service
from agglab.systems.netrpc.wire import COUNT_MAX, KEPT, KEY, KEYS_BYTES, PAIRS, Kind

POSITIONS = 32
"""The number of positions in each worker's window of calls to the server."""
PAYLOAD_BYTES = wire.HEADER_BYTES + KEYS_BYTES

OWN_COUNTERS = {
    "places_given": ("keys", "keys of a server that have a place at the switch"),
    "keys_kept": ("keys", "keys that a server keeps itself in this round"),
    "answered_again": (
        "packets",
        "answers that a server sent again because a worker asked; in `duplicates` too",
    ),
}
"""The counters that a server has besides `shared.COUNTERS`. At a worker they are 0."""


class NetRpcServer:
    """The state machine of one server. cells: the number of places for this job in each bank of the
    switch. peers: the addresses of the workers, by rank. first_sequence: the session's first
    sequence number."""

    listens = True

    def __init__(
        self,
        job: int,
        service: type[Service],
        cells: int,
        first_sequence: int,
        peers: Sequence[Address],
        lanes: int,
    ) -> None:
        self.peers = tuple(peers)
        self.longest_bytes = wire.longest_datagram_bytes(lanes)
        rows = len(self.peers) * POSITIONS
        self.outbox = Outbox(
            np.zeros((rows, -(-PAYLOAD_BYTES // 64) * 64), np.uint8),
            np.full(rows, PAYLOAD_BYTES, np.uint32),
            np.repeat(np.arange(len(self.peers), dtype=np.uint32), POSITIONS),
        )
        self._sequences = np.full(rows, first_sequence - 1, np.int64)
        self._job = job
        self._methods = {m.number: m for m in service.methods}
        self._values_at, self._counters_at = PlaceAllocator(cells, PAIRS), PlaceAllocator(cells, 1)
        self._round = 0
        self._values: dict[int, int] = {}
        self._counters: dict[int, int] = {}
        self._queue: list[int] = []
        self._counts = dict.fromkeys((*shared.COUNTERS, *OWN_COUNTERS), 0)

    def begin(
        self, now_ns: int, values: NDArray, out: NDArray, sums: NDArray[np.int32] | None = None
    ) -> None:
        """Raises TypeError, because a server has no input."""
        raise TypeError("a server begins no round: it serves whatever the workers begin")

    def on_datagrams(self, now_ns: int, inbox: Inbox) -> int:
        """See Endpoint.on_datagrams."""
        taken = 0
        for row in range(inbox.count):
            length = int(inbox.lengths[row])
            self._counts["received"] += 1
            self._counts["bytes_received"] += LOWER_HEADER_BYTES + length
            payload = inbox.buffer[row, :length].tobytes()
            taken += self._take(int(inbox.peers[row]), payload)
        return taken

    def _take(self, peer: int, payload: bytes) -> bool:
        """Processes a packet and counts it. Returns whether it was the caller's next call at its
        position."""
        if len(payload) != PAYLOAD_BYTES:
            self._counts["malformed"] += 1
            return False
        header = np.frombuffer(payload, wire.HEADER, 1)[0]
        if not self._well_formed(header):
            self._counts["malformed"] += 1
            return False
        row = peer * POSITIONS + int(header["slot"])
        ahead = int(header["tag"]) - int(self._sequences[row])
        if ahead == 0:
            self._counts["duplicates"] += 1
            self._answer_again(row, int(header["attempt"]))
        elif ahead < 0 or int(header["epoch"]) < self._round:
            self._counts["late"] += 1
        elif ahead > 1:
            self._counts["malformed"] += 1
        else:
            self._execute(row, header, payload)
        return ahead == 1

    def _well_formed(self, header: np.void) -> bool:
        """Returns whether a worker of the job can have sent a packet with this header."""
        known = (*self._methods, PLACE_VALUES.number, PLACE_COUNTERS.number)
        return bool(
            header["version"] == VERSION
            and header["kind"] == Kind.KEYS
            and header["job"] == self._job
            and header["slot"] < POSITIONS
            and header["method"] in known
        )

    def _execute(self, row: int, header: np.void, payload: bytes) -> None:
        """Executes a call that has not been executed before. The first call of a later round clears
        all values and counters."""
        if int(header["epoch"]) > self._round:
            self._round = int(header["epoch"])
            self._values, self._counters = {}, {}
        self._sequences[row] = int(header["tag"])
        entries = np.frombuffer(payload, KEY, offset=wire.HEADER_BYTES).copy()
        for used in np.flatnonzero(entries["place"] != UNUSED):
            self._map_access(int(header["method"]), entries[used])
        answer = header.copy()
        answer["kind"] |= RESULT
        frame = self.outbox.frames[row]
        frame[:PAYLOAD_BYTES] = np.frombuffer(answer.tobytes() + entries.tobytes(), np.uint8)
        self._queue.append(row)

    def _answer_again(self, row: int, attempt: int) -> None:
        header = self.outbox.frames[row, : wire.HEADER_BYTES].view(wire.HEADER)
        header["attempt"] = attempt
        if row not in self._queue:
            self._counts["answered_again"] += 1
            self._queue.append(row)

    def _map_access(self, number: int, entry: np.void) -> None:
        """Performs a method for one key, and writes the result into the key's entry."""
        key = int(entry["key"])
        if number == PLACE_VALUES.number:
            entry["place"] = self._values_at.of(key)
        elif number == PLACE_COUNTERS.number:
            entry["place"] = self._counters_at.of(key)
        else:
            entry["place"] = KEPT
            entry["value"] = self._perform(self._methods[number], key, int(entry["value"]))

    def _perform(self, method: Method, key: int, value: int) -> int:
        if method.counts:
            held = min(COUNT_MAX, self._counters.get(key, 0) + 1)
            self._counters[key] = 0 if method.clear == COUNTER else held
            return self._counters[key]
        held = self._values.get(key, 0)
        if method.add_to:
            held = (held + value) % 2**32
        if method.clear == VALUES:
            held = 0
        self._values[key] = held
        return held

    def poll(self, now_ns: int) -> NDArray[np.uint32]:
        """See Endpoint.poll."""
        queue, self._queue = self._queue, []
        self._counts["sent"] += len(queue)
        self._counts["bytes_sent"] += len(queue) * (LOWER_HEADER_BYTES + PAYLOAD_BYTES)
        return np.array(queue, np.uint32)

    def repeats(self, row: int) -> Repeat | None:
        """Returns None, because a server repeats an answer only when a worker repeats its call."""
        return None

    @property
    def deadline_ns(self) -> int:
        """Always the largest int64, because a server only answers and has no timers."""
        return NEVER_NS

    @property
    def done(self) -> bool:
        """Always True, because a server takes part in no round."""
        return True

    @property
    def chunks(self) -> int:
        return 0

    @property
    def chunks_done(self) -> int:
        return 0

    @property
    def in_flight(self) -> int:
        return 0

    @property
    def counters(self) -> Mapping[str, int]:
        """The counters by name (`shared.COUNTERS`, `OWN_COUNTERS`); they count from the creation of
        the endpoint."""
        own = {
            "places_given": self._values_at.given + self._counters_at.given,
            "keys_kept": len(self._values) + len(self._counters),
        }
        return {**self._counts, **own}

    def waiting(self, most: int) -> list[list[int]]:
        """Returns an empty list, because a server waits for nothing."""
        return []

    def finish(self) -> None:
        """Does nothing, because a server has no result."""
