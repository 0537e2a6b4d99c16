"""What becomes of frame k of a direction under each kind of impairment.

Every decision is a function of (key, k); Gilbert-Elliott keeps the state it has reached, which
follows from the same two. Frames are asked for in ascending order. Each impairment decides on every
frame that arrives, also on one that another has dropped, so that none changes the decisions of
another. What is decided for a frame holds for its duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agglab.testbed.impairments.rng import ALWAYS, direction_key, draw, threshold
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

NS_PER_US = 1000


@dataclass(slots=True)
class FrameDecision:
    """late_ns: how much later than without impairments it arrives. copies_ns: how long behind it
    each copy comes. flipped: bit numbers; 0 is the highest of the frame's first byte."""

    dropped: bool = False
    late_ns: int = 0
    copies_ns: list[int] = field(default_factory=list)
    flipped: list[int] = field(default_factory=list)


Decider = Callable[[int, int, FrameDecision], None]
"""(k, frame's bytes, decision so far)"""


def deciders(
    impairments: Sequence[Impairment], seed: int, link: str, direction: str
) -> list[Decider]:
    """One for each impairment of a direction, in their order. The first has the direction's own
    key, the n-th (from 0) that of part `n`."""
    parts = ["", *(str(n) for n in range(1, len(impairments)))]
    keys = (direction_key(seed, link, direction, part) for part in parts)
    return [decider(each, key) for each, key in zip(impairments, keys, strict=False)]


def decider(impairment: Impairment, key: int) -> Decider:
    """How one impairment decides, with the key its chance comes from."""
    return KINDS[type(impairment)](impairment, key)


def flip(frame: bytes, bit: int) -> bytes:
    """The frame with one bit turned over."""
    changed = bytearray(frame)
    changed[bit >> 3] ^= 0x80 >> (bit & 7)
    return bytes(changed)


def _drop(impairment: Drop, key: int) -> Decider:
    limit = threshold(impairment.probability)

    def decide(k: int, size: int, decision: FrameDecision) -> None:
        if draw(key, k) < limit:
            decision.dropped = True

    return decide


def _gilbert_elliott(impairment: GilbertElliott, key: int) -> Decider:
    """Draw 2k decides the transition before frame k, draw 2k + 1 the loss in the state then. The
    chain runs from frame 0 on, also for a decider that is first asked later."""
    leave = {False: threshold(impairment.to_bad), True: threshold(impairment.to_good)}
    loss = {False: threshold(impairment.good_loss), True: threshold(impairment.bad_loss)}
    bad, reached = False, 0

    def decide(k: int, size: int, decision: FrameDecision) -> None:
        nonlocal bad, reached
        for number in range(reached, k + 1):
            if draw(key, 2 * number) < leave[bad]:
                bad = not bad
        reached = k + 1
        if draw(key, 2 * k + 1) < loss[bad]:
            decision.dropped = True

    return decide


def _periodic(impairment: PeriodicDrop, key: int) -> Decider:
    def decide(k: int, size: int, decision: FrameDecision) -> None:
        since = k - impairment.offset
        if since >= 0 and since % impairment.period < impairment.count:
            decision.dropped = True

    return decide


def _drop_list(impairment: DropList, key: int) -> Decider:
    numbers = frozenset(impairment.numbers)

    def decide(k: int, size: int, decision: FrameDecision) -> None:
        if k in numbers:
            decision.dropped = True

    return decide


def _duplicate(impairment: Duplicate, key: int) -> Decider:
    limit, behind_ns = threshold(impairment.probability), impairment.delay_us * NS_PER_US

    def decide(k: int, size: int, decision: FrameDecision) -> None:
        if draw(key, k) < limit:
            decision.copies_ns.append(behind_ns)

    return decide


def _reorder(impairment: Reorder, key: int) -> Decider:
    limit, held_ns = threshold(impairment.probability), impairment.delay_us * NS_PER_US

    def decide(k: int, size: int, decision: FrameDecision) -> None:
        if draw(key, k) < limit:
            decision.late_ns += held_ns

    return decide


def _corrupt(impairment: Corrupt, key: int) -> Decider:
    """Draw 2k decides whether, draw 2k + 1 which bit."""
    limit = threshold(impairment.probability)

    def decide(k: int, size: int, decision: FrameDecision) -> None:
        if draw(key, 2 * k) < limit:
            decision.flipped.append(draw(key, 2 * k + 1) % (8 * size))

    return decide


def _jitter(impairment: Jitter, key: int) -> Decider:
    """0 to max_us, each nanosecond alike: the draw scaled by its upper bits."""
    span = impairment.max_us * NS_PER_US + 1

    def decide(k: int, size: int, decision: FrameDecision) -> None:
        decision.late_ns += draw(key, k) * span // ALWAYS

    return decide


KINDS: dict[type, Callable[..., Decider]] = {
    Drop: _drop,
    GilbertElliott: _gilbert_elliott,
    PeriodicDrop: _periodic,
    DropList: _drop_list,
    Duplicate: _duplicate,
    Reorder: _reorder,
    Corrupt: _corrupt,
    Jitter: _jitter,
}
