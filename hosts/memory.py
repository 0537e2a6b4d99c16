"""Memory for the many small arrays of a large network, in blocks that the kernel can hold in huge
pages.

A simulated network uses the arrays of its workers in no order. With pages of 4 KiB, the processor
would have to look up the page nearly each time.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import DTypeLike, NDArray

BLOCK_BYTES = 1 << 24
"""NumPy asks the kernel for huge pages for arrays of this size."""
LINE_BYTES = 64


class _Block:
    """The block whose rest is still unused. Its memory is freed with the last array in it."""

    memory: NDArray[np.uint8] = np.zeros(0, np.uint8)
    used = 0


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """Returns an array like numpy.zeros, which begins at a multiple of 64 bytes."""
    kind = np.dtype(dtype)
    wanted = prod((shape,) if isinstance(shape, int) else shape) * kind.itemsize
    if wanted > BLOCK_BYTES // 4:
        return np.zeros(shape, kind)
    if _Block.memory.size - _Block.used < wanted:
        room = np.zeros(BLOCK_BYTES + LINE_BYTES, np.uint8)
        first = -room.ctypes.data % LINE_BYTES
        _Block.memory, _Block.used = room[first : first + BLOCK_BYTES], 0
    begin = _Block.used
    _Block.used += -(-wanted // LINE_BYTES) * LINE_BYTES
    return _Block.memory[begin : begin + wanted].view(kind).reshape(shape)
