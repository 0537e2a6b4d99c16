"""The decisions of impairments in C (decisions.c). Virtual time builds them into its own library;
what asks for single decisions uses `load`. Imports `common` only."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from agglab.common import c_build

HERE = Path(__file__).resolve().parent
PART = "testbed"
"""The folder of the cache."""


@functools.cache
def load() -> ctypes.CDLL:
    """The decisions alone. Raises BuildError: no compiler, or it refused."""
    library = ctypes.CDLL(str(c_build.build_library(PART, sorted(HERE.glob("*.c")), [HERE])))
    u64, pointer = ctypes.c_uint64, ctypes.c_void_p
    library.decide.restype, library.decide.argtypes = None, [pointer, u64, u64, pointer]
    library.draw.restype, library.draw.argtypes = u64, [u64, u64]
    library.decider_layout.restype, library.decider_layout.argtypes = ctypes.c_uint32, []
    return library
