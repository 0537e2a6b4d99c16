"""The input of every worker in every round, as a function of the scenario's seed.

Tensors differ at every rank and position, so that a sum that took a worker twice, or a chunk at the
wrong place, differs from the right one. Floats look like gradients: both signs, magnitudes from
2^-39 to 2, blocks that are zero at one worker or at all. Imports NumPy only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

BLOCK = 4096
"""Values that share their leading exponent bits, or are all zero."""
ZERO_ONE_IN = 16
SIGN_AND_FRACTION = 0x83FFFFFF
"""Random bits: sign, fraction and the lower three of the exponent field."""
UPPER_EXPONENTS = range(11, 16)
"""Upper five bits of the exponent field; 15 with the low three reaches up to 2^1."""


def make_tensor(
    seed: int,
    job: int,
    rank: int,
    round: int,
    elements: int,
    dtype: DTypeLike,
    start: int = 0,
) -> NDArray:
    """Elements `start` to `start + elements` of worker `rank`'s input: flat, int32 or float32.

    int32 covers the whole range. Raises TypeError for other dtypes.
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.dtype(np.int32), np.dtype(np.float32)):
        raise TypeError(f"no tensors of dtype {dtype}: int32 or float32")
    first = start // BLOCK
    blocks = -(-(start + elements) // BLOCK) - first
    bits = _stream((seed, job, round, rank), first * BLOCK // 2, blocks * BLOCK // 2)
    if dtype == np.float32:
        _shape_floats(bits.reshape(blocks, BLOCK), seed, job, rank, round, first)
    offset = start - first * BLOCK
    return bits.view(dtype)[offset : offset + elements]


def _stream(key: tuple[int, ...], skip: int, count: int) -> NDArray[np.uint32]:
    """64-bit numbers `skip` to `skip + count` of the generator named by `key`, as 32-bit ones."""
    generator = np.random.PCG64(np.random.SeedSequence(key))
    raw: NDArray[np.uint64] = generator.advance(skip).random_raw(count)
    return raw.astype("<u8", copy=False).view("<u4")


def _shape_floats(
    bits: NDArray[np.uint32], seed: int, job: int, rank: int, round: int, first: int
) -> None:
    """Make random bits, one row a block from block `first` on, into floats."""
    count = len(bits)
    shared = _stream((seed, job, round), first, count)[::2]
    own = _stream((seed, job, round, rank, 0), first, count)[::2]
    upper = UPPER_EXPONENTS.start + (shared >> 16) % len(UPPER_EXPONENTS)
    zero = (shared % ZERO_ONE_IN == 0) | (own % ZERO_ONE_IN == 0)
    zero &= np.arange(first, first + count) > 0
    bits &= np.uint32(SIGN_AND_FRACTION)
    bits |= (upper << 26).astype(np.uint32)[:, np.newaxis]
    bits[zero] = 0
