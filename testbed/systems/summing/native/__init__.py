"""The sums of truth.py in C (sums.c). This module imports nothing but `common`."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from p4native.common import c_build

HERE = Path(__file__).resolve().parent
PART = "testbed"
"""The folder of the cache in which the library is kept."""
FLAGS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")


class _State(ctypes.Structure):
    """The ctypes equivalent of `struct sums` in sums.h."""

    _fields_ = [
        ("count", ctypes.c_uint64),
        ("limit", ctypes.c_double),
        *[(name, ctypes.c_void_p) for name in ("scale", "total", "values", "largest")],
    ]


class FloatSums:
    """Sums of one block of each worker's float32 tensor. Workers are added one after the other, so
    that memory does not grow with their number.

    scale: the factor that makes an integer of each value, which is rounded. limit: the largest
    magnitude of these integers, to which they are limited.
    """

    def __init__(self, scale: NDArray[np.float64], limit: float) -> None:
        self._library = load()
        self.scale = np.ascontiguousarray(scale)
        self.total = np.zeros(scale.size)
        """The sums of the integers."""
        self.values = np.zeros(scale.size)
        """The sums of the values."""
        self.largest = np.zeros(scale.size, np.uint32)
        """The largest magnitude that a worker has at each place, as the bits of a float32."""
        arrays = (self.scale, self.total, self.values, self.largest)
        self._state = _State(scale.size, limit, *(array.ctypes.data for array in arrays))
        self._address = ctypes.addressof(self._state)

    def add(self, x: NDArray[np.float32]) -> None:
        """Adds the values of a worker. Other threads run meanwhile."""
        assert x.dtype == np.float32 and x.size == self.scale.size and x.flags.c_contiguous
        self._library.sums_add(self._address, x.ctypes.data)


@functools.cache
def load() -> ctypes.CDLL:
    """Returns the library. Raises BuildError if there is no compiler, or if it refuses the code."""
    sources = sorted(HERE.glob("*.c"))
    library = ctypes.CDLL(str(c_build.build_library(PART, sources, [HERE], FLAGS)))
    library.sums_add.restype = None
    library.sums_add.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    return library
