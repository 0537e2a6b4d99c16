"""The worker of docs/protocol.md and docs/hosts.md in plain Python, one packet at a time.

Independent of `hosts`: the C step is compared with it, packet by packet. `wrong_first_window`
plants the known fault of the public SwitchML client: the timer of a first-window packet remembers
the next packet's id.
"""

from __future__ import annotations

import struct

import quantise_model
from switch_model import HEADER, INT32, OPENING, SCALED

PROBES = 8
MAX_BACKOFF = 4


class SlotModel:
    def __init__(self, tag: int) -> None:
        self.tag, self.chunk, self.kind = tag, 0, 0
        self.waiting = False
        self.attempt = 0
        self.sent_ns = self.first_sent_ns = self.order = self.first_order = 0
        self.datagram = b""


class WorkerModel:
    """Same calls as `hosts.worker.Worker`, but values are lists and batches lists of bytes."""

    def __init__(
        self, job, workers, lanes, window, timing, first_tag=1, wrong_first_window=False
    ) -> None:
        self.job, self.workers, self.lanes, self.window = job, workers, lanes, window
        self.timing, self.wrong_first_window = timing, wrong_first_window
        self.slots = [SlotModel((first_tag - 1) % 2**32) for _ in range(window)]
        self.srtt = self.rttvar = None
        self.rto = timing.initial_rto_ns
        self.progress_ns = self.probe_ns = self.backoff = 0
        self.lossy = False
        self.late = 0
        self.next_order = self.answered_order = 0
        self.counters = dict.fromkeys(
            ["sent", "received", "retransmitted", "duplicates", "late", "malformed", "timeouts"], 0
        )
        self.chunks = self.chunks_done = self.rounds = 0
        self.queue = []
        self.disagreed = False

    @property
    def done(self):
        return not self.disagreed and not any(slot.waiting for slot in self.slots)

    def begin(self, now_ns, values, floats):
        self.values, self.floats = values, floats
        self.chunks = -(-len(values) // self.lanes)
        self.chunks_done = 0
        self.out = [None] * len(values)
        self.sums = [None] * len(values)
        self.exponents = [0] * self.chunks
        self.progress_ns = now_ns
        self.queue = []
        self.shape = struct.pack(
            "!QIHHBB",
            len(values),
            self.workers,
            self.lanes,
            self.window,
            SCALED if floats else INT32,
            self.rounds % 256,
        )
        self.rounds += 1
        for index in range(max(1, min(self.window, self.chunks))):
            slot = self.slots[index]
            slot.chunk, slot.kind = index, OPENING if floats or index == 0 else INT32
            self._prepare(index)

    def datagram(self, index):
        return self.slots[index].datagram

    def _chunk(self, chunk):
        return self.values[chunk * self.lanes : (chunk + 1) * self.lanes]

    def _own_exponent(self, chunk):
        return quantise_model.chunk_exponent(self._chunk(chunk)) if chunk < self.chunks else 0

    def _prepare(self, index):
        slot = self.slots[index]
        exponent, values = 0, []
        if slot.kind == OPENING:
            exponent = self._own_exponent(slot.chunk) if self.floats else 0
        elif slot.kind == SCALED:
            exponent = self._own_exponent(slot.chunk + self.window)
            agreed = self.exponents[slot.chunk]
            values = [
                quantise_model.quantise(value, agreed, self.workers)
                for value in self._chunk(slot.chunk)
            ]
        else:
            values = self._chunk(slot.chunk)
        slot.tag = (slot.tag + 1) % 2**32
        slot.datagram = HEADER.pack(1, slot.kind, self.job, index, exponent, 0, slot.tag)
        if slot.kind == OPENING:
            slot.datagram += 2 * self.shape
        else:
            values = [*values, *[0] * (self.lanes - len(values))]
            slot.datagram += struct.pack(f"!{self.lanes}i", *values)
        slot.waiting, slot.attempt = True, 0
        self.queue.append(index)

    def on_datagrams(self, now_ns, datagrams):
        rtts = []
        for datagram in datagrams:
            if not self.disagreed:
                rtts.append(self._on_result(now_ns, datagram))
        measured = [rtt for rtt in rtts if rtt is not None and rtt >= 0]
        if measured:
            self._sample(max(measured))
        return sum(rtt is not None for rtt in rtts)

    def _on_result(self, now_ns, datagram):
        """None if it was not awaited, -1 if it measures nothing, else the round trip."""
        self.counters["received"] += 1
        verdict, slot = self._judge(datagram)
        if verdict != "awaited":
            self.counters[verdict] += 1
            return None
        slot.waiting = False
        self.progress_ns = now_ns
        self.backoff = 0
        exponent, attempt = HEADER.unpack_from(datagram)[4:6]
        rtt = self._round_trip(slot, attempt, now_ns)
        if slot.kind == OPENING:
            slot.kind = SCALED if self.floats else INT32
            if datagram[HEADER.size :] != 2 * self.shape:
                self.disagreed = True
                return rtt
        else:
            self._take(slot, datagram)
            slot.chunk += self.window
        if slot.chunk < self.chunks:
            self.exponents[slot.chunk] = exponent
            self._prepare(self.slots.index(slot))
        return rtt

    def _round_trip(self, slot, attempt, now_ns):
        order, sent_ns = slot.first_order, slot.first_sent_ns
        if attempt == slot.attempt:
            order, sent_ns = slot.order, slot.sent_ns
        if order < self.answered_order:
            if self.srtt is not None and attempt == 0:
                late = now_ns - slot.first_sent_ns - self.srtt
                self.late = max(self.late, min(late, self.srtt))
            return -1
        if attempt:
            self.late -= self.late // 16
        self.answered_order = order
        return now_ns - sent_ns if attempt in (0, slot.attempt) else -1

    def _judge(self, datagram):
        if len(datagram) < HEADER.size:
            return "malformed", None
        version, kind, job, index, _exponent, _attempt, tag = HEADER.unpack_from(datagram)
        length = HEADER.size + (36 if kind == 0x80 | OPENING else 4 * self.lanes)
        legal = version == 1 and 0x80 <= kind <= 0x82 and job == self.job
        if not legal or len(datagram) != length or index >= self.window:
            return "malformed", None
        slot = self.slots[index]
        ahead = (tag - slot.tag + 2**31) % 2**32 - 2**31
        if ahead > 0 or (ahead == 0 and (kind & 0x7F != slot.kind or index in self.queue)):
            return "malformed", None
        if ahead == 0 and slot.waiting:
            return "awaited", slot
        return ("duplicates" if ahead == -slot.waiting else "late"), None

    def _take(self, slot, datagram):
        first = slot.chunk * self.lanes
        sums = struct.unpack_from(f"!{self.lanes}i", datagram, HEADER.size)
        for index, total in enumerate(sums[: len(self.values) - first], first):
            self.sums[index] = self.out[index] = total
            if self.floats:
                exponent = self.exponents[slot.chunk]
                self.out[index] = quantise_model.dequantise(total, exponent, self.workers)
        self.chunks_done += 1

    def _sample(self, rtt):
        if self.srtt is None:
            self.srtt, self.rttvar = rtt, rtt // 2
        else:
            self.rttvar += (abs(rtt - self.srtt) - self.rttvar) // 4
            self.srtt += (rtt - self.srtt) // 8
        rto = self.srtt + max(4 * self.rttvar, self.timing.slack_ns)
        self.rto = min(max(rto, self.timing.min_rto_ns), self.timing.max_rto_ns)

    def _transmit(self, slot, now_ns):
        slot.sent_ns = now_ns
        self.next_order += 1
        slot.order = self.next_order
        self.counters["sent"] += 1

    def _overtaken(self, slot):
        return slot.order < self.answered_order

    def _gap(self):
        if self.srtt is None:
            return self.rto
        margin = min(max(4 * self.rttvar, self.srtt // 4, self.late), self.srtt)
        return max(self.srtt + margin, self.timing.min_gap_ns)

    def _due(self, slot):
        if self._overtaken(slot):
            return slot.sent_ns + min(self._gap(), self.timing.max_rto_ns)
        since = max(slot.sent_ns, self.progress_ns, self.probe_ns)
        timeout = self._gap() if self.lossy else self.rto
        return since + min(timeout << self.backoff, self.timing.max_rto_ns)

    def poll(self, now_ns):
        sending, self.queue = self.queue, []
        for index in sending:
            slot = self.slots[index]
            self._transmit(slot, now_ns)
            slot.first_sent_ns, slot.first_order = now_ns, slot.order
        waiting = [slot for slot in self.slots if slot.waiting]
        self.deadline_ns = self.progress_ns + self.timing.give_up_ns if waiting else 2**63 - 1
        if self.deadline_ns <= now_ns:
            raise TimeoutError
        due = [index for index, slot in enumerate(self.slots) if slot.waiting]
        due = [index for index in due if self._due(self.slots[index]) <= now_ns]
        silent = [index for index in due if not self._overtaken(self.slots[index])]
        self.lossy = self.lossy or len(silent) < len(due)
        if silent:
            self.counters["timeouts"] += len(silent[:PROBES])
            self.probe_ns = now_ns
            self.backoff = min(self.backoff + 1, MAX_BACKOFF)
        for index in due:
            if index not in silent[PROBES:]:
                self._resend(index, now_ns)
                sending.append(index)
        if waiting:
            self.deadline_ns = min(self.deadline_ns, *map(self._due, waiting))
        return sending

    def _resend(self, index, now_ns):
        slot = self.slots[index]
        slot.attempt = min(slot.attempt + 1, 255)
        slot.datagram = slot.datagram[:7] + bytes([slot.attempt]) + slot.datagram[8:]
        self.counters["retransmitted"] += 1
        self._transmit(slot, now_ns)
        if self.wrong_first_window and slot.chunk < self.window and slot.kind != OPENING:
            self._mistake(index)

    def _mistake(self, index):
        """Resend the next packet's values under this slot's header."""
        slot = self.slots[index]
        following = self._chunk(slot.chunk + 1)
        values = [*following, *[0] * (self.lanes - len(following))]
        slot.datagram = slot.datagram[: HEADER.size] + struct.pack(f"!{self.lanes}i", *values)
