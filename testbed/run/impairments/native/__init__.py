"""The C code that decides what impairments do to frames (decisions.c). Virtual time builds it into
its own library. Code that needs single decisions uses `load`. This module imports nothing but
`common`."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from p4native.common import c_build

HERE = Path(__file__).resolve().parent
PART = "testbed"
"""The folder of the cache in which the library is kept."""


@functools.cache
def load() -> ctypes.CDLL:
    """Returns a library that contains nothing but the decisions. Raises BuildError if there is no
    compiler, or if it refuses the code."""
    library = ctypes.CDLL(str(c_build.build_library(PART, sorted(HERE.glob("*.c")), [HERE])))
    u64, pointer = ctypes.c_uint64, ctypes.c_void_p
    library.decide.restype, library.decide.argtypes = None, [pointer, u64, u64, pointer]
    library.draw.restype, library.draw.argtypes = u64, [u64, u64]
    library.decider_layout.restype, library.decider_layout.argtypes = ctypes.c_uint32, []
    return library
