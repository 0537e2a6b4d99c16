"""Finds out why packets are sent again in virtual time, where everything that happens to a frame is
known.

An agent sends a packet again because it has received no answer. Each retransmission belongs to one
of three cases: explained, consequence or unexplained.

The retransmission is explained if a packet of the same chunk (slot and tag), or of the chunk before
it on the slot, was lost, changed or held up anywhere. It is also explained if a fault stopped or
slowed a node that should have answered, at some time since the first transmission.

It is a consequence if another packet of the job was lost, changed or held up, or was sent again for
that reason. This must have happened after the first transmission, or before it by no more than the
time that the agent has waited since. The reason for this case is that workers that repair a loss
are out of step for a moment, and packets that are late then look as if they were lost. Workers that
compute between two sums are out of step after they have computed as well, so the computing time is
added.

Otherwise it is unexplained, and is due to the program or to the worker's timers.

Between hosts, where switches only forward, a packet waits for its peer's answer. Its retransmission
is explained if any packet between these two hosts was lost, changed or held up since the first
transmission. If the peer gathers what all agents send, trouble with any packet of the job explains
it. That trouble may also have come before the first transmission, by no more than the time since.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from agglab.hosts import wire
from agglab.hosts.endpoint import Repeat
from agglab.testbed.statistics import Repeats
from agglab.testbed.virtual.clock import Clock

TAGS = 1 << 32
EXAMPLES_KEPT = 3
FOREVER_NS = 1 << 62

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


@dataclass
class Causes:
    """Collects what happens to frames and nodes, and determines from this why packets were sent
    again."""

    clock: Clock
    _jobs: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    _computing_ns: dict[int, int] = field(default_factory=dict)
    _hit: set[Chunk] = field(default_factory=set)
    _last_hit_ns: dict[int, int] = field(default_factory=dict)
    _last_mended_ns: dict[int, int] = field(default_factory=dict)
    _last_hit_between_ns: dict[tuple[int, Pair], int] = field(default_factory=dict)
    _disturbances: list[Disturbance] = field(default_factory=list)
    _explained: Counter[tuple[int, str]] = field(default_factory=Counter)
    _consequences: Counter[tuple[int, str]] = field(default_factory=Counter)
    _unexplained: Counter[tuple[int, str]] = field(default_factory=Counter)
    _examples: list[str] = field(default_factory=list)

    def agent(self, ip: bytes, port: int, job: int, computing_ns: int = 0) -> None:
        """Records that frames from and to this address belong to this job. This works for the
        packets of any system. computing_ns: how long the job's agents compute between two sums of a
        round."""
        self._jobs[ip, port.to_bytes(2, "big")] = job
        self._computing_ns[job] = computing_ns

    def hit(self, frame: bytes) -> None:
        """Records that a frame was lost, changed or held up."""
        if len(frame) < wire.LOWER_HEADER_BYTES + wire.HEADER_BYTES:
            return
        header = np.frombuffer(frame, wire.HEADER, 1, wire.LOWER_HEADER_BYTES)[0]
        job = self._job_of(frame, int(header["job"]))
        self._hit.add((job, int(header["slot"]), int(header["tag"])))
        self._last_hit_ns[job] = self.clock.now_ns
        between = frozenset((frame[SOURCE], frame[TARGET]))
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

    def end(self, disturbance: Disturbance) -> None:
        """Records that the disturbance is over."""
        disturbance.end_ns = self.clock.now_ns

    def retransmitted(self, host: str, job: int, repeat: Repeat, between: Pair) -> None:
        """Records that an agent has sent a packet again, and why. between: the agent's address and
        its peer's."""
        first_sent_ns = repeat.first_sent_ns
        was_hit = self._was_hit(job, repeat, between)
        if was_hit or self._disturbed(job, first_sent_ns):
            self._explained[job, host] += 1
            if was_hit:
                self._last_mended_ns[job] = self.clock.now_ns
            return
        waited_ns = self.clock.now_ns - first_sent_ns
        apart_ns = waited_ns + self._computing_ns.get(job, 0)
        if self._last_trouble_ns(job) >= first_sent_ns - apart_ns:
            self._consequences[job, host] += 1
            return
        self._unexplained[job, host] += 1
        if len(self._examples) < EXAMPLES_KEPT:
            place = "packet" if repeat.place is None else f"slot {repeat.place}, tag"
            what = f"{host}, job {job}, {place} {repeat.number}"
            self._examples.append(f"{what}: {waited_ns / 1e6:.3f} ms after its first transmission")

    def _last_trouble_ns(self, job: int) -> int:
        """Returns the time at which a packet of the job was last lost, or sent again because of a
        loss."""
        never = -FOREVER_NS
        return max(self._last_hit_ns.get(job, never), self._last_mended_ns.get(job, never))

    def _was_hit(self, job: int, repeat: Repeat, between: Pair) -> bool:
        if repeat.gathered:
            waited_ns = self.clock.now_ns - repeat.first_sent_ns
            since_ns = repeat.first_sent_ns - waited_ns
            return self._last_hit_ns.get(job, -FOREVER_NS) >= since_ns
        if repeat.place is None:
            return self._last_hit_between_ns.get((job, between), -1) >= repeat.first_sent_ns
        chunks = ((job, repeat.place, (repeat.number - back) % TAGS) for back in (0, 1))
        return any(chunk in self._hit for chunk in chunks)

    def _disturbed(self, job: int, since_ns: int) -> bool:
        return any(d.job in (None, job) and d.end_ns >= since_ns for d in self._disturbances)

    def repeats(self) -> Repeats:
        """Returns how many packets were sent again so far, by cause."""
        return Repeats(
            dict(self._explained),
            dict(self._consequences),
            dict(self._unexplained),
            tuple(self._examples),
        )
