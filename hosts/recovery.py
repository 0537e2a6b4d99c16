"""The settings and the memory of loss recovery, which is the same for all systems and is written in
C (native/recovery.c).

docs/hosts.md gives the reasons for its rules under "When a packet is taken for lost". This module
imports only the loader of the C library.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agglab.hosts import histogram, library

PENDING = [
    ("sent_ns", "i8"),
    ("first_sent_ns", "i8"),
    ("order", "u8"),
    ("first_order", "u8"),
    ("attempt", "u2"),
    ("waiting", "u1"),
    ("weight", "u1"),
    ("spare", "u1", 4),
]
"""The fields of `struct pending`, for dtypes of structures that begin with it."""
PENDING_BYTES = 40
QUEUED = 1
"""The value of the field `waiting` of a packet that is laid out and not sent yet."""


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


class Recovery(ctypes.Structure):
    """The ctypes equivalent of `struct recovery` in native/recovery.h: the loss recovery of one
    path."""

    _fields_ = [
        *[
            (name, ctypes.c_int64)
            for name in (
                "initial_rto_ns",
                "min_rto_ns",
                "min_gap_ns",
                "max_rto_ns",
                "slack_ns",
                "give_up_ns",
                "hold_ns",
                "delays_ns",
                "others_ns",
                "ask_ns",
                "srtt_ns",
                "rttvar_ns",
                "rto_ns",
                "longest_ns",
                "late_ns",
                "progress_ns",
                "probe_ns",
                "deadline_ns",
            )
        ],
        *[(name, ctypes.c_uint64) for name in ("next_order", "answered_order")],
        *[(name, ctypes.c_uint32) for name in ("in_flight", "sampled", "lossy", "backoff")],
        *[(name, ctypes.c_uint32) for name in ("weight", "loss_probes")],
        *[(name, ctypes.c_uint32) for name in ("prompt_share", "spare")],
        *[(name, ctypes.c_uint64) for name in ("retransmitted", "timeouts", "asked")],
        ("latencies", ctypes.c_uint32 * histogram.BUCKETS),
    ]

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
        )

    @property
    def answered_after(self) -> NDArray[np.int64]:
        """A histogram of the times from a packet's first sending to its answer (histogram.py)."""
        return np.frombuffer(self.latencies, np.uint32).astype(np.int64)


def check_layout() -> None:
    """Raises AssertionError unless C and Python agree on the layout of the structures in memory."""
    expected = ctypes.sizeof(Recovery) << 16 | PENDING_BYTES
    assert library.load().recovery_layout() == expected, "recovery.h and recovery.py differ"
