"""Declares every metric over time (SeriesMetric), for series.csv, docs/results.md and reports."""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS = ("worker", "link", "switch", "job")
"""The kinds of things to which a metric can belong. A worker's name is its job and its host; for a
server or scheduler, role and rank are added (`job1 h2`, `job1 p1 server 4`). A link's name is a
direction (`h1->s1`)."""


@dataclass(frozen=True)
class SeriesMetric:
    """One metric over time. kind: one of KINDS. counted: who counts it, and how."""

    kind: str
    name: str
    unit: str
    meaning: str
    counted: str


BETWEEN = "since the previous sample"
_AGENT = "its agent, between two batches of packets"
_LINK = "real: the kernel's queue at the sender; virtual: the link"
_SUM = "the samples of its workers and servers"

SERIES = (
    SeriesMetric("worker", "sent_rate", "bit/s", f"frames sent {BETWEEN}", _AGENT),
    SeriesMetric("worker", "received_rate", "bit/s", f"frames received {BETWEEN}", _AGENT),
    SeriesMetric("worker", "retransmitted", "packets", f"frames sent again {BETWEEN}", _AGENT),
    SeriesMetric(
        "worker", "in_flight", "packets", "packets sent that still wait for an answer", _AGENT
    ),
    SeriesMetric(
        "worker",
        "round_trip",
        "s",
        "smoothed round-trip time (RFC 6298), for several paths the longest; absent until one "
        "was measured",
        _AGENT,
    ),
    SeriesMetric("worker", "chunks_done", "chunks", "results of the current round", _AGENT),
    SeriesMetric("link", "rate", "bit/s", f"frames that left the queue {BETWEEN}", _LINK),
    SeriesMetric(
        "link", "queue", "packets", "packets that wait in the queue in front of the link", _LINK
    ),
    SeriesMetric("link", "queue_bytes", "bytes", "bytes of these packets", _LINK),
    SeriesMetric(
        "link",
        "queue_drops",
        "packets",
        f"packets for which the queue had no room {BETWEEN}",
        _LINK,
    ),
    SeriesMetric(
        "switch",
        "sent_rate",
        "bit/s",
        f"frames sent at all ports {BETWEEN}",
        "sum over its links",
    ),
    SeriesMetric(
        "switch",
        "queue",
        "packets",
        "packets that wait in front of its ports",
        "sum over its links",
    ),
    SeriesMetric(
        "switch",
        "slots_in_use",
        "slots",
        "slots of its aggregation memory that hold incomplete sums, or complete ones that are "
        "kept until they are answered; absent where a system does not report them",
        "the registers of its program",
    ),
    SeriesMetric("job", "sent_rate", "bit/s", "frames sent by all its agents", _SUM),
    SeriesMetric("job", "retransmitted", "packets", "frames that all its agents sent again", _SUM),
    SeriesMetric("job", "in_flight", "packets", "packets sent that still wait for an answer", _SUM),
    SeriesMetric("job", "round_trip", "s", "mean of its workers' round-trip times", _SUM),
)
UNITS = {(metric.kind, metric.name): metric.unit for metric in SERIES}

PROGRAM = "program."
"""The prefix of a metric that is a counter of a user's own P4 program."""
PROGRAM_COUNTER = SeriesMetric(
    "switch",
    f"{PROGRAM}*",
    "packets or bytes",
    f"what a counter of your own P4 program counted {BETWEEN}, all cells together; only in virtual "
    "time",
    "its program",
)
COUNTER_NAME = re.compile(r"[A-Za-z0-9_]+")
"""The names of counters that are sampled. They need no quotes in series.csv, and are fit for the
names of files."""


def unit_of(kind: str, metric: str) -> str | None:
    """Returns the unit of a metric over time; None if there is no such metric."""
    is_counter = metric.startswith(PROGRAM) and COUNTER_NAME.fullmatch(metric[len(PROGRAM) :])
    if kind == PROGRAM_COUNTER.kind and is_counter:
        return PROGRAM_COUNTER.unit
    return UNITS.get((kind, metric))
