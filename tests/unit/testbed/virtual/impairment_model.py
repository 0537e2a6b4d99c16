"""A second reading of docs/virtual.md, "Impairments", in plain Python: what becomes of frame k."""

from __future__ import annotations

from fractions import Fraction

from agglab.testbed.run.impairments import FrameDecision, draw
from agglab.topologies.graph import (
    Corrupt,
    Drop,
    DropList,
    Duplicate,
    GilbertElliott,
    Impairment,
    Jitter,
    PeriodicDrop,
    Reorder,
)

WHOLE = 1 << 64


def happens(key: int, number: int, probability: float) -> bool:
    return draw(key, number) < Fraction(probability) * WHOLE // 1


def lost_in_burst(model: GilbertElliott, key: int, k: int) -> bool:
    bad = False
    for number in range(k + 1):
        if happens(key, 2 * number, model.to_good if bad else model.to_bad):
            bad = not bad
    return happens(key, 2 * k + 1, model.bad_loss if bad else model.good_loss)


def decision_on(impairments: list[tuple[Impairment, int]], k: int, size: int) -> FrameDecision:
    """What all impairments, each with its key, do to frame k of `size` bytes."""
    decision = FrameDecision()
    for impairment, key in impairments:
        match impairment:
            case Drop(probability=p):
                decision.dropped |= happens(key, k, p)
            case GilbertElliott():
                decision.dropped |= lost_in_burst(impairment, key, k)
            case PeriodicDrop(period=period, count=count, offset=offset):
                decision.dropped |= k >= offset and (k - offset) % period < count
            case DropList(numbers=numbers):
                decision.dropped |= k in numbers
            case Duplicate(probability=p, delay_us=delay_us):
                decision.copies_ns += [1000 * delay_us] if happens(key, k, p) else []
            case Reorder(probability=p, delay_us=delay_us):
                decision.late_ns += 1000 * delay_us if happens(key, k, p) else 0
            case Corrupt(probability=p):
                bit = draw(key, 2 * k + 1) % (8 * size)
                decision.flipped += [bit] if happens(key, 2 * k, p) else []
            case Jitter(max_us=max_us):
                decision.late_ns += draw(key, k) * (1000 * max_us + 1) // WHOLE
    return decision
