"""Makes the input of every worker in every round. The input depends only on the scenario's seed,
the job, the rank and the round.

Inputs differ between ranks and between positions. So the sum is wrong if a worker was added twice
or a chunk was put at the wrong place. Floats look like gradients: they have both signs and
magnitudes from 2^-39 to 2, and some blocks are zero at one worker or at all workers. This module
imports only bfloat16.py.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import DTypeLike, NDArray

from agglab.hosts.bfloat16 import BFLOAT16, cast, dtype_of

BLOCK = 4096
"""The number of values in a block. The values of a block share the upper bits of their exponents,
or are all zero."""
ZERO_ONE_IN = 16
SIGN_AND_FRACTION = 0x83FFFFFF
"""The bits of a float that are random for each value: the sign, the fraction and the lower three
bits of the exponent field."""
UPPER_EXPONENTS = range(11, 16)
"""The possible upper five bits of the exponent field. With 15 and the lower three bits, magnitudes
reach up to 2^1."""
OVERLAPS = ("none", "random", "full")
CHOICE_OF_ONE, CHOICE_OF_ALL = 1, 2
"""Names of streams of random numbers, besides the stream 0: one chooses the filled blocks of a
single worker, the other those of all workers."""


@dataclass(frozen=True)
class Sparsity:
    """A choice of the blocks that are not zero, for tensors of `elements` values.

    density: the share of blocks that are not zero; the number of these blocks is rounded. block:
    the number of values in a block. overlap: how the choices of the workers are related. With
    `random`, each worker chooses its blocks independently. With `full`, all workers have the same
    blocks. With `none`, workers have different blocks, until all blocks are used up.
    """

    density: float
    block: int
    overlap: str
    workers: int
    elements: int

    @property
    def blocks(self) -> int:
        """The number of blocks in a tensor."""
        return -(-self.elements // self.block)


@lru_cache(maxsize=256)
def filled_blocks(
    sparsity: Sparsity, seed: int, job: int, rank: int, round: int
) -> NDArray[np.bool_]:
    """Returns, for each block of the tensor of worker `rank`, whether the block is not zero."""
    blocks = sparsity.blocks
    count = builtins.round(sparsity.density * blocks)
    alone = sparsity.overlap == "random"
    stream = (CHOICE_OF_ONE, rank) if alone else (CHOICE_OF_ALL, 0)
    order = np.argsort(_stream((seed, job, round, *stream), 0, blocks)[::2], kind="stable")
    first = rank * count if sparsity.overlap == "none" else 0
    filled = np.zeros(blocks, np.bool_)
    filled[order[np.arange(first, first + count) % max(1, blocks)]] = True
    filled.flags.writeable = False
    return filled


def make_tensor(
    seed: int,
    job: int,
    rank: int,
    round: int,
    elements: int,
    dtype: DTypeLike,
    start: int = 0,
    sparsity: Sparsity | None = None,
) -> NDArray:
    """Returns `elements` values of worker `rank`'s input, from position `start` on: a flat array of
    int32, float32, float16 or bfloat16.

    int32 covers the whole range. float16 and bfloat16 have the float32 values of the same input,
    rounded; some of those of float16 are subnormal. Raises TypeError for other dtypes.
    """
    dtype = dtype_of(dtype)
    if dtype in (np.dtype(np.float16), BFLOAT16):
        wide = make_tensor(seed, job, rank, round, elements, np.float32, start, sparsity)
        return cast(wide, dtype)
    if dtype not in (np.dtype(np.int32), np.dtype(np.float32)):
        raise TypeError(f"no tensors of dtype {dtype}: int32, float32, float16 or bfloat16")
    first = start // BLOCK
    blocks = -(-(start + elements) // BLOCK) - first
    # Of a single block, only what is asked for is made; an output of the generator has two values.
    begin = start // 2 * 2 if blocks == 1 else first * BLOCK
    end = start + elements if blocks == 1 else (first + blocks) * BLOCK
    source = generator(seed, job, rank, round)
    bits = _outputs(source, begin // 2, -(-(end - begin) // 2))
    if dtype == np.float32:
        rows = bits.reshape(blocks, bits.size // max(1, blocks))
        _shape_floats(rows, seed, job, rank, round, first, dense=sparsity is not None)
    offset = start - begin
    tensor = bits.view(dtype)[offset : offset + elements]
    if sparsity is not None:
        filled = filled_blocks(sparsity, seed, job, rank, round)
        numbers = np.arange(start, start + elements) // sparsity.block
        tensor[~filled[numbers]] = 0
    return tensor


def generator(seed: int, job: int, rank: int, round: int) -> np.random.PCG64:
    """Returns the generator of the values of worker `rank`, before its first output."""
    return _generator((seed, job, round, rank))


def _generator(key: tuple[int, ...]) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence(key))


def _stream(key: tuple[int, ...], skip: int, count: int) -> NDArray[np.uint32]:
    """Returns outputs of a 64-bit random generator with the seed `key` (_outputs)."""
    return _outputs(_generator(key), skip, count)


def _outputs(source: np.random.PCG64, skip: int, count: int) -> NDArray[np.uint32]:
    """Returns outputs of a new generator, as 32-bit numbers: `count` outputs after the first
    `skip`."""
    raw: NDArray[np.uint64] = source.advance(skip).random_raw(count)
    return raw.astype("<u8", copy=False).view("<u4")


def _shape_floats(
    bits: NDArray[np.uint32],
    seed: int,
    job: int,
    rank: int,
    round: int,
    first: int,
    dense: bool,
) -> None:
    """Turns random bits into floats, in place. Each row of `bits` is a block of the tensor,
    beginning with block `first`. dense: whether no block becomes zero."""
    upper = upper_exponents(seed, job, rank, round, first, len(bits), dense)
    bits &= np.uint32(SIGN_AND_FRACTION)
    bits |= upper[:, np.newaxis]
    bits[upper == 0] = 0


def upper_exponents(
    seed: int, job: int, rank: int, round: int, first: int, count: int, dense: bool = False
) -> NDArray[np.uint32]:
    """Returns for each of `count` blocks of floats the upper five bits of the exponent field, at
    their place in a float. They are 0 if all values of the block are zero. first: the number of the
    first block. dense: whether no block becomes zero."""
    shared = _shared_by_all(seed, job, round, first, count)
    upper = UPPER_EXPONENTS.start + (shared >> 16) % len(UPPER_EXPONENTS)
    bits: NDArray[np.uint32] = (upper << 26).astype(np.uint32)
    if dense or first + count <= 1:  # block 0 never becomes zero
        return bits
    own = _stream((seed, job, round, rank, 0), first, count)[::2]
    zero = (shared % ZERO_ONE_IN == 0) | (own % ZERO_ONE_IN == 0)
    bits[zero & (np.arange(first, first + count) > 0)] = 0
    return bits


@lru_cache(maxsize=256)
def _shared_by_all(seed: int, job: int, round: int, first: int, count: int) -> NDArray[np.uint32]:
    """Returns a random number for each block, the same for all workers."""
    shared = _stream((seed, job, round), first, count)[::2]
    shared.flags.writeable = False
    return shared
