"""Chooses the number of lanes for sparse tensors.

A switch sends a packet's values if one of them is not zero at any worker. The more blocks a packet
touches, the more zeros it carries; the shorter it is, the more its headers count. Packets of
exactly one block are often best.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from agglab.hosts.wire import LOWER_HEADER_BYTES
from agglab.hosts.workloads import Embedding, Sparse
from agglab.systems.omnireduce.wire import full_bytes
from agglab.testbed.schema.jobs import Job


def lanes_for(jobs: Sequence[Job], most: int) -> int:
    """Returns the number of lanes, at most `most`, with which the fewest bytes are sent to a worker
    of each of these jobs. It is `most` if no tensor has blocks of zeros."""
    shares = [(job.elements, *_filled_blocks(job)) for job in jobs]

    def sent_bytes(lanes: int) -> float:
        filled = sum(n * _filled_packets(block, share, lanes) for n, block, share in shares)
        return filled * (LOWER_HEADER_BYTES + full_bytes(lanes)) / lanes

    return min(range(most, 0, -1), key=sent_bytes)


def _filled_packets(block: int, filled: float, lanes: int) -> float:
    """Returns the share of packets that touch a filled block. On average a packet touches
    1 + (lanes - gcd) / block blocks."""
    return 1 - (1 - filled) ** (1 + (lanes - gcd(lanes, block)) / block)


def _filled_blocks(job: Job) -> tuple[int, float]:
    """Returns the length of the blocks of a job's tensors, and the share of them that is not zero
    at some worker. For an embedding, this is the largest possible share, in which all words of all
    batches differ."""
    work, workers = job.work, len(job.hosts)
    if isinstance(work, Embedding):
        return work.width, min(1.0, workers * work.tokens / max(1, work.rows))
    if not isinstance(work, Sparse):
        return 1, 1.0
    anywhere = {
        "full": work.density,
        "none": min(1.0, workers * work.density),
        "random": 1 - (1 - work.density) ** workers,
    }
    return work.block, anywhere[work.overlap]
