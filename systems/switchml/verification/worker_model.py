"""A model of what a worker sends, counts and returns, and when, according to docs/protocol.md and
docs/hosts.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from agglab.systems.switchml.verification import packets
from agglab.systems.switchml.verification.packets import (
    BFLOAT,
    HALF,
    HEADER,
    INT32,
    OPENING,
    RESULT,
    SCALED,
    SHAPE,
    VERSION,
)

NOT_FINITE = 255
ATTEMPT_MAX = 255
PROBES = 8
LOSS_PROBES = 5
BACKOFF_MAX = 4
ALWAYS_PROMPT = 2**16
"""The share of packets that are answered without being sent again, if all are."""
LOWER_BYTES = packets.HEADER_AT
NEVER_NS = 2**63 - 1


@dataclass(frozen=True)
class Times:
    """The fields of hosts.worker.Timing, in nanoseconds."""

    initial_rto_ns: int
    min_rto_ns: int
    min_gap_ns: int
    max_rto_ns: int
    slack_ns: int
    give_up_ns: int
    delays_ns: int = 0
    others_ns: int = 0


@dataclass
class Flight:
    """The packet of a slot that is on its way. If `waits` is false, it is the last one that was
    answered."""

    tag: int
    chunk: int = 0
    kind: int = INT32
    waits: bool = False
    queued: bool = False
    attempt: int = 0
    datagram: bytes = b""
    sent_ns: int = 0
    first_ns: int = 0
    order: int = 0
    first_order: int = 0

    @property
    def has_values(self) -> bool:
        """Whether the packet has values, and is not an opening."""
        return self.kind != OPENING


class WorkerModel:
    """One worker of a job."""

    def __init__(
        self, job: int, workers: int, lanes: int, window: int, first_tag: int, times: Times
    ) -> None:
        self._job, self._lanes, self._window, self._times = job, lanes, window, times
        self._workers = workers
        self._bits = 31 - ceil(log2(workers))
        self.slots = [Flight((first_tag - 1) % 2**32) for _ in range(window)]
        self._queue: list[int] = []
        self.counters: Counter[str] = Counter()
        self._orders = self._answered = 0
        self._sampled = self._of_values = self._lossy = False
        """Three flags: whether a round-trip time is known, whether it is that of a packet with
        values, and whether a packet was ever sent again because later ones were answered first."""
        self._srtt = self._rttvar = self._late = self._probed_ns = self._progress_ns = 0
        self._longest = self._prompt_share = 0
        self.rto_ns, self._backoff, self._loss_probes = times.initial_rto_ns, 0, 0
        self.deadline_ns = 0
        self._values: NDArray = np.zeros(0, np.int32)
        self._chunks = 0
        self._floats = False
        self._rounds = 0
        self.disagreed = False

    # A round.

    def begin(self, now_ns: int, values: NDArray) -> None:
        """Starts a round with a one-dimensional array."""
        self._values = values.copy()
        self._floats = values.dtype == np.float32
        self._chunks = -(-values.size // self._lanes)
        self.exponents = [0] * self._chunks
        self.sums = np.zeros(values.size, np.int32)
        self._progress_ns = now_ns
        self._queue = []
        sizes = values.size, self._workers, self._lanes, self._window
        self._shape = SHAPE.pack(*sizes, SCALED if self._floats else INT32, self._rounds % 256)
        self._rounds += 1
        for number in range(max(1, min(self._chunks, self._window))):
            flight = self.slots[number]
            flight.chunk = number
            flight.kind = OPENING if self._floats or number == 0 else INT32
            self._prepare(number)

    @property
    def over(self) -> bool:
        return not self.disagreed and not any(flight.waits for flight in self.slots)

    def _part(self, chunk: int) -> slice:
        return slice(chunk * self._lanes, (chunk + 1) * self._lanes)

    def _own_exponent(self, chunk: int) -> int:
        if chunk >= self._chunks:
            return 0
        bits = self._values[self._part(chunk)].view(np.uint32)
        return int(((bits >> 23) & 0xFF).max())

    def _log2_scale(self, chunk: int) -> int:
        return self._bits - (max(self.exponents[chunk], 1) - 126)

    def _on_wire(self, chunk: int) -> bytes:
        part = self._values[self._part(chunk)]
        if self._floats:
            if self.exponents[chunk] == NOT_FINITE:
                part = np.zeros(part.size, np.int32)
            else:
                limit = 2**self._bits - 1
                scaled = np.ldexp(part.astype(np.float64), self._log2_scale(chunk))
                part = np.clip(np.rint(scaled), -limit, limit)
        return part.astype(">i4").tobytes().ljust(4 * self._lanes, b"\0")

    def _prepare(self, number: int) -> None:
        flight = self.slots[number]
        flight.tag = (flight.tag + 1) % 2**32
        exponent, opens = 0, flight.kind == OPENING
        if self._floats:
            exponent = self._own_exponent(flight.chunk + (0 if opens else self._window))
        body = 2 * self._shape if opens else self._on_wire(flight.chunk)
        fields = (VERSION, flight.kind, self._job, number, exponent, 0, flight.tag)
        flight.datagram = HEADER.pack(*fields) + body
        flight.waits = flight.queued = True
        flight.attempt = 0
        self._queue.append(number)

    # Results.

    def take(self, now_ns: int, datagrams: Sequence[bytes]) -> int:
        """Handles datagrams that arrived together. Returns how many of them were awaited."""
        awaited, longest_ns = 0, -1
        for datagram in datagrams:
            self.counters["received"] += 1
            self.counters["bytes_received"] += LOWER_BYTES + len(datagram)
            if self.disagreed:
                continue
            what = self.judge(datagram)
            if what != "awaited":
                self.counters[what] += 1
                continue
            awaited += 1
            longest_ns = max(longest_ns, self._take(now_ns, datagram))
        if longest_ns >= 0:
            self._sample(longest_ns)
        return awaited

    def judge(self, datagram: bytes) -> str:
        """Returns what a datagram counts as: awaited, duplicates, late or malformed."""
        if len(datagram) < HEADER.size:
            return "malformed"
        version, kind, job, slot, _, _, tag = HEADER.unpack_from(datagram)
        # A worker knows HALF and BFLOAT, whatever its round is of; a program that sums no halves
        # does not.
        of_values = packets.body_bytes(SCALED, self._lanes)
        is_halves = kind & ~RESULT in (HALF, BFLOAT)
        own = of_values if is_halves else packets.body_bytes(kind, self._lanes)
        size = HEADER.size + own
        sound = version == VERSION and kind & RESULT and (kind & ~RESULT <= HALF or is_halves)
        if not sound or len(datagram) != size or job != self._job or slot >= self._window:
            return "malformed"
        flight = self.slots[slot]
        ahead = (tag - flight.tag + 2**31) % 2**32 - 2**31
        if ahead > 0 or (ahead == 0 and (kind & ~RESULT != flight.kind or flight.queued)):
            return "malformed"
        if ahead == 0 and flight.waits:
            return "awaited"
        return "duplicates" if ahead == (-1 if flight.waits else 0) else "late"

    def _take(self, now_ns: int, datagram: bytes) -> int:
        """Handles an awaited result. Returns its round-trip time, or -1."""
        _, _, _, number, exponent, attempt, _ = HEADER.unpack_from(datagram)
        flight = self.slots[number]
        rtt_ns = self._answer(flight, attempt, now_ns)
        if flight.kind == OPENING:
            if datagram[HEADER.size :] != 2 * self._shape:
                self.disagreed = True
                return rtt_ns
            if not self._chunks:
                return rtt_ns
            flight.kind = SCALED if self._floats else INT32
        else:
            part = self._part(flight.chunk)
            values = np.frombuffer(datagram, ">i4", self._lanes, HEADER.size)
            self.sums[part] = values[: self.sums[part].size]
            if flight.chunk + self._window >= self._chunks:
                return rtt_ns
            flight.chunk += self._window
        self.exponents[flight.chunk] = exponent
        self._prepare(number)
        return rtt_ns

    def returned(self) -> NDArray:
        """Returns what the caller receives: sums, or floats. A chunk without a finite result has
        the input."""
        if not self._floats:
            return self.sums
        out = self._values.copy()
        for chunk in range(self._chunks):
            if self.exponents[chunk] != NOT_FINITE:
                part = self._part(chunk)
                exact = np.ldexp(self.sums[part].astype(np.float64), -self._log2_scale(chunk))
                with np.errstate(over="ignore"):
                    out[part] = exact.astype(np.float32)
        return out

    @property
    def not_finite(self) -> bool:
        """Whether the caller is told that the result is not finite."""
        if not self._floats:
            return False
        return NOT_FINITE in self.exponents or not bool(np.isfinite(self.returned()).all())

    @property
    def first_not_finite(self) -> int | None:
        """The index that the caller is told: that of this worker's own Inf or NaN, or of a sum
        beyond float32; None if another worker has it."""
        outer = [n for n, exponent in enumerate(self.exponents) if exponent == NOT_FINITE]
        if outer:
            of_chunks = np.concatenate([np.arange(self._values.size)[self._part(n)] for n in outer])
            own = of_chunks[~np.isfinite(self._values[of_chunks])]
        else:
            own = np.flatnonzero(~np.isfinite(self.returned()))
        return int(own[0]) if own.size else None

    # Times (docs/hosts.md, "When a packet is taken for lost").

    def _answer(self, flight: Flight, attempt: int, now_ns: int) -> int:
        last = attempt == flight.attempt
        order = flight.order if last else flight.first_order
        flight.waits = False
        self._progress_ns, self._backoff, self._loss_probes = now_ns, 0, 0
        self._prompt_share -= self._prompt_share // 16
        if not flight.attempt:
            self._prompt_share += ALWAYS_PROMPT // 16
        if order < self._answered:
            if self._sampled and attempt == 0:
                late = now_ns - flight.first_ns - self._srtt
                self._late = max(self._late, min(max(late, 0), self._srtt))
            return -1
        if attempt:
            self._late -= self._late // 16
        self._answered = order
        if not last and attempt:
            return -1
        return self._measured(flight, now_ns - (flight.sent_ns if last else flight.first_ns))

    def _measured(self, flight: Flight, rtt_ns: int) -> int:
        """Returns the round-trip time. If that of a packet with values is known, returns -1 for an
        opening. The first packet with values discards the times of openings."""
        if self._of_values and not flight.has_values:
            return -1
        if flight.has_values and not self._of_values:
            self._sampled, self._of_values = False, True
        return rtt_ns

    def _sample(self, rtt_ns: int) -> None:
        if self._sampled:
            error = rtt_ns - self._srtt
            self._rttvar += (abs(error) - self._rttvar) >> 2
            self._srtt += error >> 3
        else:
            self._sampled, self._srtt, self._rttvar = True, rtt_ns, rtt_ns >> 1
            self._longest = rtt_ns
        self._longest = max(rtt_ns, self._longest - (self._longest - rtt_ns) // 256)
        wanted = self._srtt + max(4 * self._rttvar, self._times.slack_ns)
        self.rto_ns = _within(self._times.min_rto_ns, wanted, self._times.max_rto_ns)

    def _is_measured(self, flight: Flight) -> bool:
        return self._sampled and (self._of_values or not flight.has_values)

    def _loss_probe_ns(self, flight: Flight) -> int:
        """Returns when the first waiting packet is sent again as a loss probe."""
        if not self._lossy or self._is_measured(flight) or self._loss_probes == LOSS_PROBES:
            return NEVER_NS
        times, halvings = self._times, LOSS_PROBES - self._loss_probes
        early = times.delays_ns + (times.initial_rto_ns - times.delays_ns) // 2**halvings
        return max(flight.first_ns, self._progress_ns) + early

    def _gap_ns(self, flight: Flight) -> int:
        if not self._is_measured(flight):
            return self.rto_ns
        margin = min(max(self._srtt // 4 + self._late, 4 * self._rttvar), self._srtt)
        return _within(self._times.min_gap_ns, self._srtt + margin, self._times.max_rto_ns)

    def _due_ns(self, flight: Flight) -> int:
        since, timeout = flight.sent_ns, self._gap_ns(flight)
        if flight.order >= self._answered:
            since = max(since, self._progress_ns, self._probed_ns)
            timeout = self._silence_ns(timeout) << self._backoff
        return since + min(timeout, self._times.max_rto_ns)

    def _silence_ns(self, gap_ns: int) -> int:
        """Returns how long a silence lasts before packets are sent again, without back-off."""
        waiting = sum(flight.waits for flight in self.slots)
        if not self._lossy:
            return self.rto_ns + waiting * self._times.others_ns
        if waiting * self._prompt_share // ALWAYS_PROMPT <= PROBES:
            return gap_ns
        return max(self.rto_ns, self._longest)

    def poll(self, now_ns: int) -> list[tuple[int, bytes]] | None:
        """Returns what is sent now, as (slot, datagram). Returns None when the worker gives up, or
        if its round has ended in disagreement."""
        if self.disagreed:
            return None
        sent = []
        for number in self._queue:
            flight = self.slots[number]
            self._transmit(flight, now_ns)
            flight.queued, flight.first_ns, flight.first_order = False, now_ns, flight.order
            sent.append((number, flight.datagram))
        waiting = [n for n, flight in enumerate(self.slots) if flight.waits]
        self.deadline_ns = self._progress_ns + self._times.give_up_ns if waiting else NEVER_NS
        if self.deadline_ns <= now_ns:
            return None
        self._queue = []
        sent += self._again(now_ns, waiting)
        dues = [max(now_ns, self._due_ns(self.slots[number])) for number in waiting]
        dues += [max(now_ns, self._loss_probe_ns(self.slots[number])) for number in waiting[:1]]
        self.deadline_ns = min([self.deadline_ns, *dues])
        return sent

    def _again(self, now_ns: int, waiting: Sequence[int]) -> list[tuple[int, bytes]]:
        sent, probes = [], 0
        if waiting and self._loss_probe_ns(self.slots[waiting[0]]) <= now_ns:
            self._loss_probes += 1
            self.counters["timeouts"] += 1
            sent.append(self._send_again(waiting[0], now_ns))
        for number in waiting:
            flight = self.slots[number]
            if self._due_ns(flight) > now_ns:
                continue
            if flight.order < self._answered:
                self._lossy = True
            elif probes == PROBES:
                continue
            else:
                probes += 1
            sent.append(self._send_again(number, now_ns))
        if probes:
            self.counters["timeouts"] += probes
            self._probed_ns = now_ns
            self._backoff = min(self._backoff + 1, BACKOFF_MAX)
        return sent

    def _send_again(self, number: int, now_ns: int) -> tuple[int, bytes]:
        flight = self.slots[number]
        flight.attempt = min(flight.attempt + 1, ATTEMPT_MAX)
        datagram = bytearray(flight.datagram)
        datagram[7] = flight.attempt
        flight.datagram = bytes(datagram)
        self.counters["retransmitted"] += 1
        self._transmit(flight, now_ns)
        return number, flight.datagram

    def _transmit(self, flight: Flight, now_ns: int) -> None:
        self._orders += 1
        flight.sent_ns, flight.order = now_ns, self._orders
        self.counters["sent"] += 1
        self.counters["bytes_sent"] += LOWER_BYTES + len(flight.datagram)


def _within(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))
