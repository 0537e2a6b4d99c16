"""Builds the C library of the hosts (`native/*.c`, `systems/*/*.c`) with the machine's C compiler
if the cache lacks it, and loads it.

`p4native.common.c_build` keeps the library and documents where. Of `hosts`, this module imports
only `wire`, and while it builds also the `wire` module of each system.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from agglab.hosts import wire
from p4native.common import c_build

SOURCES = Path(__file__).parent / "native"
SYSTEMS = Path(__file__).parent / "systems"
"""The folder of the systems. A system's C code is in `systems/<name>/`. Its `wire.py` has a
function `c_header()`, whose result C code includes as `<name>_wire.h`."""
FLAGS = ("-fno-math-errno", "-fno-trapping-math")


def _sources() -> list[Path]:
    return [*sorted(SOURCES.glob("*.c")), *sorted(SYSTEMS.glob("*/*.c"))]


def _folders() -> list[Path]:
    """Returns the folders in which the compiler searches for headers. The headers of a system are
    in the folder of its C files."""
    return [SOURCES, *sorted({source.parent for source in SYSTEMS.glob("*/*.c")})]


def _generated() -> dict[str, str]:
    """Returns the text of each generated header, by the header's name. The headers are generated
    from the wire formats."""
    headers = {"wire.h": wire.c_header()}
    for name in sorted({source.parent.name for source in SYSTEMS.glob("*/*.c")}):
        system = importlib.import_module(f"agglab.hosts.systems.{name}.wire")
        headers[f"{name}_wire.h"] = system.c_header()
    return headers


def built() -> Path:
    """Returns the path of the library, which is built if the cache lacks it. Raises BuildError."""
    texts = {name: text.encode() for name, text in _generated().items()}
    return c_build.build_library("hosts", _sources(), _folders(), FLAGS, texts)


Signatures = Mapping[str, tuple[type | None, Sequence[type]]]
"""The signatures of functions, by name: the type of the result, and the types of the arguments."""

P, U32, U64, I64, INT = (
    ctypes.c_void_p,
    ctypes.c_uint32,
    ctypes.c_uint64,
    ctypes.c_int64,
    ctypes.c_int,
)
_P, _U32, _U64, _I64, _INT = P, U32, U64, I64, INT
_SIGNATURES: Signatures = {
    "quantise_exponents": (None, [_P, _U64, _U32, _P]),
    "quantise_array": (None, [_P, _U64, _U32, _P, _U32, _P, _INT]),
    "dequantise_array": (None, [_P, _U64, _U32, _P, _U32, _P, _INT]),
    "tensor_part": (None, [_P, _U64, _U64, _P]),
    "worker_begin": (None, [_P, _I64]),
    "worker_results": (_U32, [_P, _I64, _P, _U64, _P, _U32]),
    "worker_poll": (_INT, [_P, _I64]),
    "worker_layout": (_U32, []),
    "io_new": (_P, [_INT, _P, _U64, _P, _P, _U32, _P, _P, _U32, _U32]),
    "recovery_layout": (_U32, []),
    "io_free": (None, [_P]),
    "io_receive": (_INT, [_P, _I64, _I64]),
    "io_send": (_INT, [_P, _P, _P, _U32]),
    "coalescing_arrived": (None, [_P, _I64, _U32]),
    "coalescing_wait_ns": (_I64, [_P, _U32]),
    "drive_round": (_INT, [_P, _I64, _I64]),
    "io_last_error": (_INT, [_P]),
    "io_network_errors": (_U64, [_P]),
    "io_unsent": (_U64, [_P]),
    "io_unknown_senders": (_U64, [_P]),
}


@functools.cache
def load() -> ctypes.CDLL:
    """Builds the library if the cache lacks it, loads it and returns it. Calls of its functions
    release Python's global interpreter lock."""
    return _declare(ctypes.CDLL(str(built())), _SIGNATURES)


def load_system(signatures: Signatures) -> ctypes.CDLL:
    """Returns the library, as `load` does, in which the functions of one system are declared too.
    signatures: their argument and result types."""
    return _declare(load(), signatures)


def _declare(library: ctypes.CDLL, signatures: Signatures) -> ctypes.CDLL:
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
