"""Every metric over time, declared once: series.csv, docs/results.md and reports follow."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("worker", "link", "switch", "job")
"""Whose metrics there are. A worker's name is its job and its host, with its role and rank if it is
no worker (`job1 h2`, `job1 p1 server 4`), a link's is a direction (`h1->s1`)."""


@dataclass(frozen=True)
class SeriesMetric:
    """kind: one of KINDS. counted: by whom, and how."""

    kind: str
    name: str
    unit: str
    meaning: str
    counted: str


BETWEEN = "since the sample before"
_AGENT = "its agent, between two batches of packets"
_LINK = "real: the sender's queue in the kernel; virtual: the link"
_SUM = "the samples of its workers and servers"

SERIES = (
    SeriesMetric("worker", "sent_rate", "bit/s", f"frames sent {BETWEEN}", _AGENT),
    SeriesMetric("worker", "received_rate", "bit/s", f"frames received {BETWEEN}", _AGENT),
    SeriesMetric("worker", "retransmitted", "packets", f"sent again {BETWEEN}", _AGENT),
    SeriesMetric("worker", "in_flight", "packets", "sent, and waiting for an answer", _AGENT),
    SeriesMetric(
        "worker",
        "round_trip",
        "s",
        "smoothed round trip (RFC 6298), of several paths the longest; absent until measured",
        _AGENT,
    ),
    SeriesMetric("worker", "chunks_done", "chunks", "results of the round under way", _AGENT),
    SeriesMetric("link", "rate", "bit/s", f"frames that left the queue {BETWEEN}", _LINK),
    SeriesMetric("link", "queue", "packets", "waiting in the queue in front of the link", _LINK),
    SeriesMetric("link", "queue_bytes", "bytes", "of these packets", _LINK),
    SeriesMetric("link", "queue_drops", "packets", f"the queue had no room for {BETWEEN}", _LINK),
    SeriesMetric(
        "switch", "sent_rate", "bit/s", f"frames sent at all ports {BETWEEN}", "its links, added up"
    ),
    SeriesMetric(
        "switch", "queue", "packets", "waiting in front of its ports", "its links, added up"
    ),
    SeriesMetric(
        "switch",
        "slots_in_use",
        "slots",
        "of its aggregation memory: taken by sums that are not complete, or that keep their slot "
        "until they are answered; absent where a system does not tell",
        "the registers of its program",
    ),
    SeriesMetric("job", "sent_rate", "bit/s", "frames sent by all its agents", _SUM),
    SeriesMetric("job", "retransmitted", "packets", "sent again by all its agents", _SUM),
    SeriesMetric("job", "in_flight", "packets", "sent, and waiting for an answer", _SUM),
    SeriesMetric("job", "round_trip", "s", "mean of its workers' round trips", _SUM),
)
