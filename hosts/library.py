"""Builds C code for hosts with the machine's C compiler if the cache lacks it, and loads it: what
every system needs (`native/*.c`), and with it what lies beside the Python code of one system.

`p4native.common.c_build` keeps the libraries and documents where. Of `hosts`, this module imports
only what declares formats and structures.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from agglab.hosts import formats, native_structures, wire
from agglab.hosts.structures import Structure, c_structs
from p4native.common import c_build

SOURCES = Path(__file__).parent / "native"
FLAGS = ("-fno-math-errno", "-fno-trapping-math")
HEADERS = {
    name: text.encode()
    for name, text in (
        ("wire.h", wire.c_header()),
        ("structures.h", native_structures.c_header()),
    )
}
"""The generated headers that the C code of `native/` includes."""


def built() -> Path:
    """Returns the path of the library of `native/`, which is built if the cache lacks it. Raises
    BuildError."""
    return _built("hosts", (), {})


def _built(part: str, folders: Sequence[Path], headers: Mapping[str, str]) -> Path:
    searched = [*folders, SOURCES]
    sources = [source for folder in searched for source in sorted(folder.glob("*.c"))]
    texts = {**HEADERS, **{name: text.encode() for name, text in headers.items()}}
    return c_build.build_library(part, sources, searched, FLAGS, texts)


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
    "io_new": (_P, [_INT, _P, _U64, _P, _P, _U32, _P, _P, _U32, _U32]),
    "recovery_prepare": (None, [_P, _P]),
    "recovery_send": (None, [_P, _P, _I64]),
    "recovery_answered": (_I64, [_P, _P, _INT, _I64]),
    "recovery_sample": (None, [_P, _I64]),
    "recovery_repeat": (_U32, [_P, _P, _U64, _U32, _I64, _P]),
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
    """Builds the library of `native/` if the cache lacks it, loads it and returns it. Calls of its
    functions release Python's global interpreter lock."""
    return _declare(ctypes.CDLL(str(built())), _SIGNATURES)


class SystemLibrary:
    """The C code of one system: all `*.c` of a folder, wherever that is, built together with
    `native/`, whose headers it may include.

    beside: a file of the folder. headers: texts of generated headers, by the names under which the
    C code includes them. structures: the system's structures; the C code includes them as
    `state.h`. signatures: the functions of the C code that Python calls.
    """

    def __init__(
        self,
        beside: str,
        headers: Mapping[str, str],
        structures: Sequence[type[Structure]],
        signatures: Signatures,
    ) -> None:
        self._folder, self._signatures = Path(beside).parent, signatures
        self.structures = tuple(structures)
        text = f'#include "structures.h"\n{c_structs(*structures)}'
        state = formats.c_header(f"{self._folder.name}/", "AGGLAB_STATE_H", {}, text)
        self.headers = {"state.h": state, **headers}

    def build(self) -> None:
        """Builds the library if the cache lacks it. Raises BuildError."""
        self._built()

    @functools.cache  # noqa: B019  (one object for each system, and it is never dropped)
    def load(self) -> ctypes.CDLL:
        """Returns the library, as `load` of this module does. Raises BuildError."""
        return _declare(ctypes.CDLL(str(self._built())), {**_SIGNATURES, **self._signatures})

    def _built(self) -> Path:
        return _built("systems", [self._folder], self.headers)


def _declare(library: ctypes.CDLL, signatures: Signatures) -> ctypes.CDLL:
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
