"""Which frames are dropped: the mixer, the exact threshold, and independence of everything else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglab.testbed.run.impairments import direction_key, drop_numbers, splitmix64, threshold

MASK = (1 << 64) - 1


def reference_splitmix64(state: int) -> int:
    """Vigna's splitmix64.c, one step, in plain integers: (next state is the caller's)."""
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_splitmix64_has_its_published_outputs() -> None:
    draws = splitmix64(1234567, np.arange(5, dtype=np.uint64))
    assert draws.tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@settings(deadline=None)
@given(key=st.integers(0, MASK), k=st.integers(0, 1 << 48))
def test_splitmix64_equals_the_reference(key: int, k: int) -> None:
    state = (key + k * 0x9E3779B97F4A7C15) & MASK
    assert int(splitmix64(key, np.array([k], dtype=np.uint64))[0]) == reference_splitmix64(state)


@settings(deadline=None)
@given(st.floats(0, 1, allow_nan=False))
def test_threshold_is_exact(probability: float) -> None:
    limit = threshold(probability)
    assert limit <= Fraction(probability) * (1 << 64) < limit + 1


def test_ends_of_the_scale() -> None:
    assert drop_numbers(1, "h1-s1", "h1->s1", 0.0, 1000).tolist() == []
    assert drop_numbers(1, "h1-s1", "h1->s1", 1.0, 5).tolist() == [0, 1, 2, 3, 4]


def test_key_depends_on_each_part() -> None:
    keys = {
        direction_key(seed, link, direction)
        for seed in (1, 2)
        for link in ("h1-s1", "h2-s1")
        for direction in ("h1->s1", "s1->h1")
    }
    assert len(keys) == 8


def test_numbers_of_a_seed_stay_as_they_are() -> None:
    """A result once published can be had again: these values must never change."""
    assert direction_key(7, "h1-s1", "h1->s1") == 0x7F1CDBE1CDADE90F
    assert drop_numbers(7, "h1-s1", "h1->s1", 0.01, 400).tolist() == [55, 150, 165, 171]


@pytest.mark.parametrize("probability", [0.001, 0.01, 0.3])
def test_share_of_drops_is_the_probability(probability: float) -> None:
    frames = 2_000_000
    count = len(drop_numbers(3, "h1-s1", "s1->h1", probability, frames))
    # Six standard deviations of a binomial.
    assert abs(count - frames * probability) < 6 * (frames * probability) ** 0.5


@settings(deadline=None)
@given(st.integers(1, 500), st.integers(0, 500))
def test_more_frames_only_add_numbers(frames: int, more: int) -> None:
    first = drop_numbers(5, "h3-s1", "h3->s1", 0.2, frames)
    longer = drop_numbers(5, "h3-s1", "h3->s1", 0.2, frames + more)
    assert longer[longer < frames].tolist() == first.tolist()
