"""What a job should put on the links, and the least time that this takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agglab.testbed.systems.base.readings import Cells

Counts = Mapping[str, int]
"""What agents counted in the whole run, by the names in hosts/endpoint.py and in
`System.host_counters`."""
Histories = Sequence[Any]
"""What was decided in each round, according to the workload (Verdict.history); None for a wrong
round."""


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of an all-reduce's time, in seconds.

    payload_s: for the bytes of the tensor. link_s: for all bytes, with headers. lossy_s: for the
    expected time with the links' constant independent losses. window_share: the share of the
    busiest link's rate that is reached with one window in each round trip through empty queues; 1
    if the window is not a limit.
    """

    payload_s: float
    link_s: float
    lossy_s: float
    window_share: float


@dataclass(frozen=True)
class ByteRange:
    """The least and the most bytes that something may add up to, such as the retransmissions in one
    direction of a link."""

    least: int
    most: int


class Unpredictable(Exception):
    """Raised if the bytes that a job put on links cannot be predicted. The message says why."""


def nothing_decided(histories: Histories, counts: Counts) -> Mapping[str, int]:
    """Returns no bytes, as in systems whose agents send what the scenario says."""
    return {}


@dataclass(frozen=True)
class Traffic:
    """The bytes that a job puts on links, by direction (`h1->s1`; `h1->h1` is between agents of one
    host and crosses no link). Directions without traffic may be left out.

    of_round: takes the number of a round, and returns the bytes that it sends without loss.
    extra_bytes: takes a host and the counts of its agents of the job, and returns the bytes that
    these agents sent beyond the prediction, which the counts must explain. retransmitted_bytes:
    takes for each host the bytes that its agents of the job sent beyond the prediction, and the
    cells of each switch's counters by the counter's key; it returns the retransmitted bytes by
    direction. decided_bytes: takes the rounds' histories and the counts of all servers, and returns
    the bytes that follow from what agents decided in the run. It may raise Unpredictable.
    """

    of_round: Callable[[int], Mapping[str, int]]
    extra_bytes: Callable[[str, Counts], ByteRange]
    retransmitted_bytes: Callable[
        [Mapping[str, int], Mapping[str, Mapping[str, Cells]]], Mapping[str, ByteRange]
    ]
    decided_bytes: Callable[[Histories, Counts], Mapping[str, int]] = nothing_decided
