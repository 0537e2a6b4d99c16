"""Random numbers that follow from a key and an index. The same key and frame number always give the
same 64 bits.

The key of a direction is the BLAKE2b-64 digest, read as big endian, of the text
`"<seed>/<link>/<direction>"`. The numbers depend on nothing else, so another host, another link or
another order of events does not change them. Virtual links use this file, and real links use its
eBPF counterpart.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

GOLDEN = 0x9E3779B97F4A7C15
MULTIPLIER_1 = 0xBF58476D1CE4E5B9
MULTIPLIER_2 = 0x94D049BB133111EB
ALWAYS = 1 << 64
MASK = ALWAYS - 1


def direction_key(seed: int, link: str, direction: str, part: str = "") -> int:
    """Returns the 64-bit key of one direction (`h1->s1`) of one link (`h1-s1`) under a scenario's
    seed.

    part: distinguishes the impairments of a direction; empty for the first.
    """
    text = f"{seed}/{link}/{direction}" + (f"/{part}" if part else "")
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


@lru_cache
def threshold(probability: float) -> int:
    """Returns exactly floor(probability * 2^64). Probability 1 gives 2^64, which is greater than
    every draw."""
    return int(Fraction(probability) * ALWAYS)


def draw(key: int, number: int) -> int:
    """Returns one output of `splitmix64` as an int."""
    z = (key + (number + 1) * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * MULTIPLIER_1) & MASK
    z = ((z ^ (z >> 27)) * MULTIPLIER_2) & MASK
    return z ^ (z >> 31)


def splitmix64(key: int, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Returns the draw for each frame number. The draw for number k is output k of Vigna's
    splitmix64 whose state starts at `key`.

    numbers: uint64 of any shape; the result has the same shape.
    """
    with np.errstate(over="ignore"):
        z = np.uint64(key) + (numbers + np.uint64(1)) * np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(MULTIPLIER_1)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(MULTIPLIER_2)
        return z ^ (z >> np.uint64(31))


def drop_numbers(
    seed: int, link: str, direction: str, probability: float, frames: int
) -> npt.NDArray[np.int64]:
    """Returns the numbers k < frames that Bernoulli loss drops, in ascending order."""
    limit = threshold(probability)
    if limit == ALWAYS:
        return np.arange(frames)
    draws = splitmix64(direction_key(seed, link, direction), np.arange(frames, dtype=np.uint64))
    return np.flatnonzero(draws < np.uint64(limit))
