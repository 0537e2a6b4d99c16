"""Decisions on frames: the numbers stay, shares are right, and lists and periods are exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.testbed.run.impairments import (
    FrameDecision,
    decider,
    deciders,
    direction_key,
    draw,
    drop_numbers,
    flip,
    splitmix64,
)
from agglab.testbed.schema.fault_kinds import KINDS, FaultEntry
from agglab.topologies.graph import (
    COPYING,
    DELAYING,
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

SIZE = 100


ENTRY = FaultEntry(
    probability=0.5, to_bad=0.5, to_good=0.5, every=2, packets=(1,), delay_s=1e-3, jitter_s=1e-3
)
"""An entry that has what any kind of impairment needs."""
IMPAIRMENTS = {name: kind.impairment(ENTRY) for name, kind in KINDS.items() if kind.impairment}


def decisions(impairment: Impairment, count: int, key: int = 99) -> list[FrameDecision]:
    decide = decider(impairment, key)
    found = [FrameDecision() for _ in range(count)]
    for k, decision in enumerate(found):
        decide(k, SIZE, decision)
    return found


def dropped(impairment: Impairment, count: int, key: int = 99) -> list[int]:
    return [k for k, decision in enumerate(decisions(impairment, count, key)) if decision.dropped]


def test_scenarios_have_every_impairment_under_its_own_name() -> None:
    assert {type(each): name for name, each in IMPAIRMENTS.items()} == {
        kind: kind.kind for kind in get_args(Impairment)
    }


@pytest.mark.parametrize("name", IMPAIRMENTS)
def test_every_impairment_does_something_and_is_told_by_what_it_does(name: str) -> None:
    """Findings forgive lateness and copies to those kinds that are said to cause them."""
    impairment = IMPAIRMENTS[name]
    found = decisions(impairment, 100)
    assert any(decision != FrameDecision() for decision in found)
    assert any(decision.late_ns for decision in found) == isinstance(impairment, DELAYING)
    assert any(decision.copies_ns for decision in found) == isinstance(impairment, COPYING)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40))
def test_one_draw_is_one_of_many(key: int, k: int) -> None:
    assert draw(key, k) == int(splitmix64(key, np.array([k], np.uint64))[0])


def test_bernoulli_is_what_the_kernel_does() -> None:
    key = direction_key(7, "h1-s1", "h1->s1")
    assert dropped(Drop(0.01), 400, key) == [55, 150, 165, 171]
    assert dropped(Drop(0.2), 3000, key) == drop_numbers(7, "h1-s1", "h1->s1", 0.2, 3000).tolist()


def test_each_impairment_of_a_direction_has_its_own_chance() -> None:
    both = deciders((Duplicate(0.5), Corrupt(0.5)), 7, "h1-s1", "h1->s1")
    alone = decider(Corrupt(0.5), direction_key(7, "h1-s1", "h1->s1", "1"))
    for k in range(50):
        together, single = FrameDecision(), FrameDecision()
        for decide in both:
            decide(k, SIZE, together)
        alone(k, SIZE, single)
        assert together.flipped == single.flipped


def test_periods_and_lists_are_exact() -> None:
    assert dropped(PeriodicDrop(5, 2, 3), 20) == [3, 4, 8, 9, 13, 14, 18, 19]
    assert dropped(PeriodicDrop(4), 9) == [0, 4, 8]
    assert dropped(DropList((0, 7, 300)), 301) == [0, 7, 300]


def test_gilbert_elliott_by_its_definition() -> None:
    """The chain in plain words, from the draws."""
    model, key, bad, expected = GilbertElliott(0.1, 0.3, 0.05, 0.7), 12345, False, []
    for k in range(500):
        change = draw(key, 2 * k) / 2**64 < (model.to_good if bad else model.to_bad)
        bad = bad != change
        if draw(key, 2 * k + 1) / 2**64 < (model.bad_loss if bad else model.good_loss):
            expected.append(k)
    assert dropped(model, 500, key) == expected
    assert 50 < len(expected) < 200


def test_gilbert_elliott_begun_late_is_where_it_would_be() -> None:
    model = GilbertElliott(0.05, 0.1)
    whole, late, found = dropped(model, 400), decider(model, 99), []
    for k in range(250, 400):
        decision = FrameDecision()
        late(k, SIZE, decision)
        found += [k] if decision.dropped else []
    assert found == [k for k in whole if k >= 250]


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_shares_are_the_probabilities(share: float) -> None:
    count = 20_000
    allowed = 6 * (count * share) ** 0.5
    copies = sum(len(f.copies_ns) for f in decisions(Duplicate(share, 7), count))
    held = [f.late_ns for f in decisions(Reorder(share, 40), count) if f.late_ns]
    flips = [bit for f in decisions(Corrupt(share), count) for bit in f.flipped]
    for found in (copies, len(held), len(flips)):
        assert abs(found - count * share) < allowed
    assert set(held) == {40_000}
    assert all(0 <= bit < 8 * SIZE for bit in flips) and len(set(flips)) > 100


def test_jitter_fills_its_range() -> None:
    late = [decision.late_ns for decision in decisions(Jitter(3), 20_000)]
    assert min(late) == 0 or min(late) < 10
    assert 2990 < max(late) <= 3000
    assert abs(sum(late) / len(late) - 1500) < 30


@given(st.binary(min_size=1, max_size=40), st.data())
def test_a_flip_turns_one_bit_over(frame: bytes, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    changed = int.from_bytes(frame, "big") ^ int.from_bytes(flip(frame, bit), "big")
    assert changed == 1 << (8 * len(frame) - 1 - bit)


def test_a_copy_comes_as_far_behind_as_stated() -> None:
    found: Sequence[FrameDecision] = decisions(Duplicate(1.0, 25), 3)
    assert [decision.copies_ns for decision in found] == [[25_000]] * 3
