"""Finds out why packets are sent again in virtual time, where everything that happens to a frame is
known.

An agent sends a packet again because it has received no answer. Each retransmission belongs to one
of three cases: explained, consequence or unexplained.

The retransmission is explained if a packet of the same chunk (slot and tag), or of the chunk that
all agents must have finished before it, was lost, changed or held up anywhere. It is also explained
if a fault stopped or slowed a node that should have answered, at some time since the first
transmission.

It is a consequence if another packet of the job was lost, changed or held up, or was sent again for
that reason. This must have happened after the first transmission, or before it by no more than the
time that the agent has waited since. The reason for this case is that workers that repair a loss
are out of step for a moment, and packets that are late then look as if they were lost. Workers that
compute between two sums are out of step after they have computed as well, so the computing time is
added. If another worker has not sent its packet of the same chunk yet, or only in the later half of
the time that this one has waited, then no timer can be right, and the retransmission is explained.
Where workers meet on purpose (Repeat.meets), this needs no trouble before it. Instead of a packet's
trouble, it may have been a fault: an emptied switch lacks what it held until workers send it again.

Otherwise it is unexplained, and is due to the program or to the worker's timers.

Between hosts, where switches only forward, a packet waits for its peer's answer. Its retransmission
is explained if any packet between these two hosts was lost, changed or held up since the first
transmission. If the packet was for the aggregator, any packet from or to the agent's host counts.
If the peer gathers what all agents send, trouble with any packet of the job explains it. That
trouble may also have come before the first transmission, by no more than the time since.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass

import numpy as np

from agglab.hosts import wire
from agglab.hosts.endpoint import Others, Packets, Repeat
from agglab.hosts.recovery import PENDING, QUEUED
from agglab.testbed.base.traffic_counters import Repeats
from agglab.testbed.virtual.clock import Clock
from agglab.testbed.virtual.frames import packed

EXAMPLES_KEPT = 3
FOREVER_NS = 1 << 62
AGGREGATOR = packed(wire.AGGREGATOR_ADDRESS)
NUMBER = len(PENDING.names or ())
"""The index of the field of Packets that has a packet's number."""

Chunk = tuple[int, int, int]
"""The number of a job, a slot and a tag."""
Pair = frozenset[bytes]
"""The IPv4 addresses of two hosts."""
SOURCE, TARGET = slice(26, 30), slice(30, 34)
SOURCE_PORT, TARGET_PORT = slice(34, 36), slice(36, 38)


@dataclass
class Disturbance:
    """The time during which a fault stops or slows a node. job: the job whose packets it concerns;
    None for all jobs."""

    job: int | None
    begin_ns: int
    end_ns: int = FOREVER_NS


class Explained(ctypes.Structure):
    """`struct explained` of native/hits.h: counts the retransmissions of one agent that a hit of
    their chunk explains, if native/host.c sends them."""

    _fields_ = [
        ("hits", ctypes.c_void_p),
        ("mended_ns", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("job", ctypes.c_uint16),
        ("spare", ctypes.c_uint16 * 3),
    ]


class HitChunks:
    """The chunks of which a packet was lost, changed or held up (native/hits.c)."""

    def __init__(self, clock: Clock) -> None:
        self._library = clock.library
        self.address: int = self._library.hits_new()
        if not self.address:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self._library.hits_free(self.address)

    def add(self, chunk: Chunk) -> None:
        if not self._library.hits_add(self.address, *chunk):
            raise MemoryError

    def explain(self, counted: Explained, repeat: Repeat, now_ns: int) -> bool:
        """Counts a retransmission if its chunk was hit, or the chunk before it. Returns whether it
        did."""
        chunk = repeat.place, repeat.number
        before = repeat.before or (repeat.place, (repeat.number - 1) % 2**32)
        return self._library.hits_explain(ctypes.byref(counted), *chunk, *before, now_ns) != 0


class Causes:
    """Collects what happens to frames and nodes, and determines from this why packets were sent
    again."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._jobs: dict[tuple[bytes, bytes], int] = {}
        self._computing_ns: dict[int, int] = {}
        self._others: dict[int, Others] = {}
        self._packets: dict[int, dict[tuple[bytes, int], Packets]] = {}
        self._hit = HitChunks(clock)
        self._last_hit_ns: dict[int, int] = {}
        self._last_mended_ns: dict[int, ctypes.c_int64] = {}
        self._last_hit_between_ns: dict[tuple[int, Pair], int] = {}
        self._disturbances: list[Disturbance] = []
        self._explained: dict[tuple[int, str], Explained] = {}
        self._consequences: Counter[tuple[int, str]] = Counter()
        self._unexplained: Counter[tuple[int, str]] = Counter()
        self._examples: list[str] = []

    def agent(
        self,
        ip: bytes,
        port: int,
        job: int,
        computing_ns: int = 0,
        others: Others | None = None,
        packets: Packets = lambda: None,
    ) -> None:
        """Records that frames from and to this address belong to this job. This works for the
        packets of any system. computing_ns: how long the job's agents compute between two sums of a
        round. others: the method of the agent's endpoint, if its datagrams may carry packets of
        several chunks. packets: returns the agent's packets, if switches aggregate them."""
        self._jobs[ip, port.to_bytes(2, "big")] = job
        self._computing_ns[job] = computing_ns
        self._packets.setdefault(job, {})[ip, port] = packets
        if others is not None:
            self._others[job] = others

    def explained(self, job: int, host: str) -> Explained:
        """Returns where retransmissions of the job at this host are counted if they are
        explained."""
        if (job, host) not in self._explained:
            mended = ctypes.addressof(self._mended(job))
            self._explained[job, host] = Explained(self._hit.address, mended, 0, job)
        return self._explained[job, host]

    def _mended(self, job: int) -> ctypes.c_int64:
        """Returns when a packet of the job was last sent again for a reason."""
        return self._last_mended_ns.setdefault(job, ctypes.c_int64(-FOREVER_NS))

    def hit(self, frame: bytes) -> None:
        """Records that a frame was lost, changed or held up."""
        if len(frame) < wire.LOWER_HEADER_BYTES + wire.HEADER_BYTES:
            return
        header = np.frombuffer(frame, wire.HEADER, 1, wire.LOWER_HEADER_BYTES)[0]
        job = self._job_of(frame, int(header["job"]))
        self._hit.add((job, int(header["slot"]), int(header["tag"])))
        if job in self._others:
            for slot, tag in self._others[job](frame[wire.LOWER_HEADER_BYTES :]):
                self._hit.add((job, slot, tag))
        self._last_hit_ns[job] = self.clock.now_ns
        for between in _pairs(frame[SOURCE], frame[TARGET]):
            self._last_hit_between_ns[job, between] = self.clock.now_ns

    def _job_of(self, frame: bytes, stated: int) -> int:
        """Returns the job of a frame. stated: the job that a header of hosts/wire.py states. It is
        used for frames between switches, whose addresses belong to no agent."""
        sender = self._jobs.get((frame[SOURCE], frame[SOURCE_PORT]), stated)
        return self._jobs.get((frame[TARGET], frame[TARGET_PORT]), sender)

    def begin(self, job: int | None) -> Disturbance:
        """Records that from now on a fault stops or slows a worker of the job. If the job is None,
        the fault concerns a switch or link that all jobs share."""
        made = Disturbance(job, self.clock.now_ns)
        self._disturbances.append(made)
        return made

    def end(self, disturbance: Disturbance, until_ns: int = 0) -> None:
        """Records that the disturbance is over. until_ns: the time until which its effect lasts, if
        that is later than now."""
        disturbance.end_ns = max(self.clock.now_ns, until_ns)

    def retransmitted(self, host: str, job: int, repeat: Repeat, between: Pair) -> None:
        """Records that an agent has sent a packet again, and why. between: the agent's address and
        its peer's."""
        first_sent_ns, explained = repeat.first_sent_ns, self.explained(job, host)
        if self._was_hit(job, repeat, between, explained):
            return
        if self._disturbed(job, first_sent_ns):
            explained.count += 1
            self._mended(job).value = self.clock.now_ns
            return
        waited_ns = self.clock.now_ns - first_sent_ns
        apart = repeat.meets or self._disturbed(job, first_sent_ns - waited_ns)
        if apart and self._waits_for_another(job, repeat):
            explained.count += 1
            return
        apart_ns = waited_ns + self._computing_ns.get(job, 0)
        if self._last_trouble_ns(job) >= first_sent_ns - apart_ns:
            if self._waits_for_another(job, repeat):
                explained.count += 1
            else:
                self._consequences[job, host] += 1
            return
        self._unexplained[job, host] += 1
        if len(self._examples) < EXAMPLES_KEPT:
            place = "packet" if repeat.place is None else f"slot {repeat.place}, tag"
            what = f"{host}, job {job}, {place} {repeat.number}"
            self._examples.append(f"{what}: {waited_ns / 1e6:.3f} ms after its first transmission")

    def _waits_for_another(self, job: int, repeat: Repeat) -> bool:
        """Returns whether one of the job's workers has sent its packet of this chunk only in the
        later half of the time since `repeat` was first sent, or has not sent it yet."""
        middle_ns, place = (repeat.first_sent_ns + self.clock.now_ns) // 2, repeat.place
        for packets_of in self._packets.get(job, {}).values():
            packets = packets_of()
            # A worker whose window is smaller, by mistake, lacks the place.
            if packets is None or place is None or place >= packets.size:
                continue
            packet = packets[place]
            ahead = _serial_difference(int(packet[NUMBER]), repeat.number)
            is_sent = ahead > 0 or (ahead == 0 and packet["waiting"] != QUEUED)
            if not is_sent or (ahead == 0 and packet["first_sent_ns"] > middle_ns):
                return True
        return False

    def _last_trouble_ns(self, job: int) -> int:
        """Returns the time at which a packet of the job was last lost, or sent again for a
        reason."""
        return max(self._last_hit_ns.get(job, -FOREVER_NS), self._mended(job).value)

    def _was_hit(self, job: int, repeat: Repeat, between: Pair, explained: Explained) -> bool:
        """Counts a retransmission that a hit of a certain packet explains. Returns whether it
        did."""
        now_ns = self.clock.now_ns
        if repeat.place is not None and not repeat.gathered:
            return self._hit.explain(explained, repeat, now_ns)
        if repeat.gathered:
            waited_ns = now_ns - repeat.first_sent_ns
            was_hit = self._last_hit_ns.get(job, -FOREVER_NS) >= repeat.first_sent_ns - waited_ns
        else:
            last_hit_ns = self._last_hit_between_ns.get((job, between), -1)
            was_hit = last_hit_ns >= repeat.first_sent_ns
        if was_hit:
            explained.count += 1
            self._mended(job).value = now_ns
        return was_hit

    def _disturbed(self, job: int, since_ns: int) -> bool:
        return any(d.job in (None, job) and d.end_ns >= since_ns for d in self._disturbances)

    def repeats(self) -> Repeats:
        """Returns how many packets were sent again so far, by cause."""
        return Repeats(
            {agent: found.count for agent, found in self._explained.items() if found.count},
            dict(self._consequences),
            dict(self._unexplained),
            tuple(self._examples),
        )


def _serial_difference(one: int, other: int) -> int:
    """Returns one - other of two 32-bit numbers that wrap around."""
    return (one - other + 2**31) % 2**32 - 2**31


def _pairs(source: bytes, target: bytes) -> tuple[Pair, ...]:
    """Returns the pairs of addresses between which a hit of a frame counts: its own addresses, and
    each of them with the aggregator's, because a host whose request is for the aggregator may be
    answered by any other host."""
    return tuple(map(frozenset, ((source, target), (source, AGGREGATOR), (AGGREGATOR, target))))
