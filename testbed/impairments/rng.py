"""Seeded chance by number: the same key and frame number always draw the same 64 bits.

The key of a direction is the BLAKE2b-64 digest, read big endian, of the text
`"<seed>/<link>/<direction>"`. No other state enters: another host, link or order of events changes
nothing. Virtual links use this file, real links its eBPF twin.
"""

from __future__ import annotations

from fractions import Fraction
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

GOLDEN = 0x9E3779B97F4A7C15
MULTIPLIER_1 = 0xBF58476D1CE4E5B9
MULTIPLIER_2 = 0x94D049BB133111EB
ALWAYS = 1 << 64
MASK = ALWAYS - 1


def direction_key(seed: int, link: str, direction: str, part: str = "") -> int:
    """The 64-bit key of one direction of one link (`h1-s1`, `h1->s1`) under a scenario's seed.

    part: what tells the impairments of a direction apart; nothing for the first.
    """
    text = f"{seed}/{link}/{direction}" + (f"/{part}" if part else "")
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def threshold(probability: float) -> int:
    """floor(probability * 2^64), exactly; probability 1 gives 2^64, which every draw is below."""
    return int(Fraction(probability) * ALWAYS)


def draw(key: int, number: int) -> int:
    """One output of `splitmix64`, as a plain integer."""
    z = (key + (number + 1) * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * MULTIPLIER_1) & MASK
    z = ((z ^ (z >> 27)) * MULTIPLIER_2) & MASK
    return z ^ (z >> 31)


def splitmix64(key: int, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Draw of each frame number: output k of Vigna's splitmix64 whose state starts at `key`.

    numbers: uint64, any shape; the result has the same shape.
    """
    with np.errstate(over="ignore"):
        z = np.uint64(key) + (numbers + np.uint64(1)) * np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(MULTIPLIER_1)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(MULTIPLIER_2)
        return z ^ (z >> np.uint64(31))


def drop_numbers(
    seed: int, link: str, direction: str, probability: float, frames: int
) -> npt.NDArray[np.int64]:
    """Numbers k < frames that Bernoulli loss drops, ascending, int64 (one-dimensional)."""
    limit = threshold(probability)
    if limit == ALWAYS:
        return np.arange(frames)
    draws = splitmix64(direction_key(seed, link, direction), np.arange(frames, dtype=np.uint64))
    return np.flatnonzero(draws < np.uint64(limit))
