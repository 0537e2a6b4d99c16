"""The decisions of impairments in C (decisions.c). Virtual time builds them into its own library;
what asks for single decisions uses `load`. Imports `switch` only."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from pathlib import Path

from agglab.switch.build import NATIVE, build_files, sources_digest

HERE = Path(__file__).resolve().parent
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O3", NATIVE, "-fPIC", "-shared")
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""Added where AGGLAB_SANITIZE is 1; the process then needs libasan preloaded."""


def build(folders: Sequence[Path], included: Sequence[Path] = ()) -> ctypes.CDLL:
    """The library of all C in the folders, from the cache if it is there. Raises
    switch.PipelineError: no compiler, or it refused."""
    places = (*folders, *included)
    flags = (*FLAGS, *(f"-I{folder}" for folder in places))
    flags += SANITIZED if os.environ.get("AGGLAB_SANITIZE") == "1" else ()
    sources = [source for folder in folders for source in sorted(folder.glob("*.c"))]
    headers = [header for folder in places for header in sorted(folder.glob("*.h"))]
    content = "".join(sources_digest([path]) for path in (*sources, *headers))
    return ctypes.CDLL(str(build_files(sources, flags, ".so", content)))


@functools.cache
def load() -> ctypes.CDLL:
    """The decisions alone."""
    library = build([HERE])
    u64, pointer = ctypes.c_uint64, ctypes.c_void_p
    library.decide.restype, library.decide.argtypes = None, [pointer, u64, u64, pointer]
    library.draw.restype, library.draw.argtypes = u64, [u64, u64]
    library.decider_layout.restype, library.decider_layout.argtypes = ctypes.c_uint32, []
    return library
