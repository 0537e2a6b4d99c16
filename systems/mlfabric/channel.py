"""The exchange of packets between two agents, in both directions. Each packet is delivered exactly
once; the order may change.

A packet that is not acknowledged is sent again, by the rules that all systems share
(hosts/recovery.py). The receiver remembers which numbers of a window of packets have come.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import library
from agglab.hosts.endpoint import NEVER_NS
from agglab.hosts.recovery import PENDING, Recovery, Timing

WINDOW = 16
"""The largest number of packets in flight."""
AT_ONCE_NS = 0


class Channel:
    """The state that one agent keeps for its exchange with one other agent. Payloads are complete
    except for their number and attempt, which `due` returns."""

    def __init__(self, timing: Timing, hold_ns: int = 0) -> None:
        """Makes the channel. hold_ns: the longest time for which packets and their acknowledgements
        may wait in the queues of both ends."""
        self._native = library.load()
        self._recovery = Recovery.of(timing, hold_ns)
        self._address = self._recovery.address
        self._pending: NDArray[np.void] = np.zeros(WINDOW, PENDING)
        self._due: NDArray[np.uint32] = np.zeros(WINDOW, np.uint32)
        self._pending_at, self._due_at = self._pending.ctypes.data, self._due.ctypes.data
        self._packets: list[bytes] = [b""] * WINDOW
        self._waiting: deque[bytes] = deque()
        self._next = self._oldest = 0
        self.in_flight = 0
        """The number of packets that wait for an acknowledgement."""
        self.deadline_ns = NEVER_NS
        """The time from which `due` may have something to send."""
        self._heard_below = 0
        self._heard: set[int] = set()

    # What is sent.

    def put(self, payload: bytes) -> None:
        """Queues a payload. It is sent when the window has room."""
        self._waiting.append(payload)
        self.deadline_ns = AT_ONCE_NS

    def due(self, now_ns: int) -> list[tuple[int, int, int, bytes]]:
        """Returns (number, attempt, time of the first sending, payload) of all packets to send
        now. Returns an empty list before `deadline_ns`."""
        found: list[tuple[int, int, int, bytes]] = []
        if now_ns < self.deadline_ns:
            return found
        while self._waiting and self._next < self._oldest + WINDOW:
            slot = self._next % WINDOW
            self._packets[slot] = self._waiting.popleft()
            entry = self._entry(slot)
            self._native.recovery_prepare(self._address, entry)
            self._native.recovery_send(self._address, entry, now_ns)
            found.append((self._next, 0, now_ns, self._packets[slot]))
            self._next += 1
            self.in_flight += 1
        return found + self._overdue(now_ns)

    def _overdue(self, now_ns: int) -> list[tuple[int, int, int, bytes]]:
        """Returns, in the form of `due`, the packets that must be sent again now."""
        found: list[tuple[int, int, int, bytes]] = []
        self._recovery.deadline_ns = NEVER_NS
        count = self._native.recovery_repeat(
            self._address, self._pending_at, PENDING.itemsize, WINDOW, now_ns, self._due_at
        )
        for slot in self._due[:count].tolist():
            number = self._oldest + (slot - self._oldest) % WINDOW
            one = self._pending[slot]
            attempt, first_ns = int(one["attempt"]), int(one["first_sent_ns"])
            found.append((number, attempt, first_ns, self._packets[slot]))
        self.deadline_ns = int(self._recovery.deadline_ns)
        return found

    def answered(self, now_ns: int, number: int, attempt: int) -> bool:
        """Processes the acknowledgement of a packet. Returns whether the packet was waiting for
        it."""
        slot = number % WINDOW
        if not self._oldest <= number < self._next or not self._pending[slot]["waiting"]:
            return False
        trip_ns = self._native.recovery_answered(self._address, self._entry(slot), attempt, now_ns)
        if trip_ns >= 0:
            self._native.recovery_sample(self._address, trip_ns)
        self.in_flight -= 1
        self.deadline_ns = AT_ONCE_NS
        while self._oldest < self._next and not self._pending[self._oldest % WINDOW]["waiting"]:
            self._oldest += 1
        return True

    def _entry(self, slot: int) -> int:
        return self._pending_at + slot * PENDING.itemsize

    @property
    def recovery(self) -> Recovery:
        """The `Recovery` of the channel, which decides when packets are sent again."""
        return self._recovery

    @property
    def queued(self) -> int:
        """The number of packets that have never been sent, because the window had no room."""
        return len(self._waiting)

    @property
    def retransmitted(self) -> int:
        return int(self._recovery.retransmitted)

    @property
    def timeouts(self) -> int:
        return int(self._recovery.timeouts)

    # What is heard.

    def hears(self, number: int) -> bool | None:
        """Notes that the packet with this number has come. Returns true if it has come for the
        first time, and false if it came before. Returns None if no correct peer can have sent it
        yet."""
        if number >= self._heard_below + WINDOW:
            return None
        if number < self._heard_below or number in self._heard:
            return False
        self._heard.add(number)
        while self._heard_below in self._heard:
            self._heard.discard(self._heard_below)
            self._heard_below += 1
        return True
