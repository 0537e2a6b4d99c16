"""The settings and the memory of loss recovery, which is the same for all systems and is written in
C (native/recovery.c).

docs/hosts.md gives the reasons for its rules under "When a packet is taken for lost". This module
imports only histogram.py and structures.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.histogram import Histogram
from agglab.hosts.structures import (
    I64,
    U8,
    U16,
    U32,
    U64,
    Structure,
    dtype_of,
    repeated,
    structure,
)

NO_ROUND_TRIP = -1
ANSWERED, QUEUED, SENT = range(3)
"""The values of `Pending.waiting`. There cannot be an answer while a packet is QUEUED: it is laid
out and not sent yet."""


@structure("pending")
class Pending(Structure):
    """A packet that waits for its answer, or the last one that did."""

    sent_ns: I64  # last transmission
    first_sent_ns: I64
    order: U64  # number of the last transmission, counting all transmissions
    first_order: U64  # number of the first transmission
    attempt: U16  # how often it was sent again, at most 255: as in its datagram
    waiting: U8  # ANSWERED, QUEUED or SENT
    weight: U8  # in proportion to the bytes of packet and answer; 0: it opens a round
    spare: Annotated[int, repeated(U8, 4)]


PENDING = dtype_of(Pending)


@dataclass(frozen=True)
class Timing:
    """The times, in nanoseconds, after which a worker considers a packet lost, and after which it
    gives up.

    A packet is sent again after a timeout in which no answer came. The timeout is `initial_rto_ns`
    at first. Then it follows the measured round trip (RFC 6298), from `min_rto_ns` to `max_rto_ns`.
    No timeout is longer than `max_rto_ns`, the first one included. A measured timeout is always at
    least `slack_ns` longer than the mean round trip, to cover the time for which drivers let
    results gather. A packet is sent again sooner if later packets were answered first, but not
    before `min_gap_ns`. No loss probe is sent before `delays_ns`, the time that the links' delays
    alone add to a round trip, which is at most `initial_rto_ns` (docs/hosts.md). As long as
    nothing was lost, the timeout is `others_ns` longer for each packet in flight: the time that
    links need for a packet of each worker and its answer. It is 0 where workers go in step.
    """

    initial_rto_ns: int = 100_000_000
    min_rto_ns: int = 10_000_000
    min_gap_ns: int = 100_000
    max_rto_ns: int = 1_000_000_000
    slack_ns: int = 4_000_000
    give_up_ns: int = 10_000_000_000
    delays_ns: int = 0
    others_ns: int = 0


@structure("recovery")
class Recovery(Structure):
    """The loss recovery of one path: its settings and what it has learnt."""

    initial_rto_ns: I64
    min_rto_ns: I64
    min_gap_ns: I64
    max_rto_ns: I64
    slack_ns: I64  # smallest allowance above the round trip, as answers are received in batches
    give_up_ns: I64
    hold_ns: I64  # how long a peer may delay an answer on purpose
    delays_ns: I64  # no answer comes sooner: the links' delays alone take as long
    others_ns: I64  # what links need for a packet of each worker, and its answer; 0: all in step
    ask_ns: I64  # after this time a peer answers a repeated request; 0: it does not
    srtt_ns: I64
    rttvar_ns: I64
    rto_ns: I64
    longest_ns: I64  # the longest round trip, which is forgotten slowly
    late_ns: I64  # how late overtaken answers have been that were not lost
    progress_ns: I64  # when the last awaited answer came
    probe_ns: I64  # when packets were last sent again after a silence
    deadline_ns: I64  # when there is something to do even without an answer
    batch_rtt_ns: I64  # the longest of answers that came together, or NO_ROUND_TRIP
    next_order: U64
    answered_order: U64  # the latest transmission known to be answered
    in_flight: U32  # packets that wait for an answer
    sampled: U32  # a round trip has been measured
    lossy: U32  # answers have left gaps
    backoff: U32  # how often the timeout after a silence has been doubled
    weight: U32  # the largest of an answered packet; the round trip is that of such packets
    loss_probes: U32  # loss probes sent since the last answer
    prompt_share: U32  # packets answered without being sent again, in 2^-PROMPT_SHARE_BITS of all
    spare: U32
    retransmitted: U64
    timeouts: U64  # retransmissions after a silence
    asked: U64  # retransmissions that asked for an answer after ask_ns
    latencies: Histogram  # from first transmissions to answers

    @classmethod
    def of(cls, timing: Timing, hold_ns: int = 0, ask_ns: int = 0) -> Recovery:
        """Returns the initial state, in which no round trip has been measured. hold_ns: the longest
        time for which the peer may delay an answer on purpose. ask_ns: the time after which a peer
        answers a repeated packet in any case; 0 if there is none."""
        return cls(
            initial_rto_ns=timing.initial_rto_ns,
            min_rto_ns=timing.min_rto_ns,
            min_gap_ns=timing.min_gap_ns,
            max_rto_ns=timing.max_rto_ns,
            slack_ns=timing.slack_ns,
            give_up_ns=timing.give_up_ns,
            hold_ns=hold_ns,
            delays_ns=timing.delays_ns,
            others_ns=timing.others_ns,
            ask_ns=ask_ns,
            rto_ns=timing.initial_rto_ns,
            deadline_ns=2**63 - 1,
            batch_rtt_ns=NO_ROUND_TRIP,
        )

    @property
    def answered_after(self) -> NDArray[np.int64]:
        """A histogram of the times from a packet's first sending to its answer (histogram.py)."""
        return np.frombuffer(memoryview(self.latencies), np.uint32).astype(np.int64)
