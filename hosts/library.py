"""Builds the C helper (`native/*.c`, `systems/*/*.c`) with the system's compiler, once, and loads
it.

The shared object is cached under a hash of the sources, the flags, the compiler and the processor,
in `$AGGLAB_CACHE`, or `$XDG_CACHE_HOME/agglab`, or `~/.cache/agglab`. With `AGGLAB_SANITIZE=1` in
the environment it is built with the address and undefined-behaviour sanitizers. Imports
`hosts.wire` only, and each system's `wire` when it builds.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import importlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from agglab.hosts import wire

SOURCES = Path(__file__).parent / "native"
SYSTEMS = Path(__file__).parent / "systems"
"""A system that has C has it in `systems/<name>/`; its `wire.py` has `c_header()`, which C includes
as `<name>_wire.h`."""
CPU_INFO = Path("/proc/cpuinfo")
# On ARM64 clang 14 has no -march=native, and gcc's does not tune.
NATIVE = "-mcpu=native" if platform.machine() == "aarch64" else "-march=native"
FLAGS = [
    "-std=gnu11",
    "-O3",
    NATIVE,
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
]
# Of x86-64: flags, model; of ARM64: Features, CPU implementer, part, ...
PROCESSOR = ("flags", "model", "Features", "CPU")
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


class BuildError(RuntimeError):
    """The C helper could not be built: no compiler, or the compiler refused."""


def cache_folder() -> Path:
    """Where built libraries are kept."""
    chosen = os.environ.get("AGGLAB_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(base) / "agglab"


def _compiler() -> str:
    name = os.environ.get("CC", "cc")
    path = shutil.which(name)
    if path is None:
        raise BuildError(f"no C compiler: '{name}' is not in PATH; install gcc, or set CC")
    return path


def _processor() -> str:
    """Returns the facts about the processor that NATIVE depends on."""
    try:
        lines = CPU_INFO.read_text().split("\n\n", 1)[0].splitlines()
    except OSError:
        return platform.machine()
    return "".join(line for line in lines if line.startswith(PROCESSOR))


def _sources(suffix: str) -> list[Path]:
    return [*sorted(SOURCES.glob(f"*{suffix}")), *sorted(SYSTEMS.glob(f"*/*{suffix}"))]


def _generated() -> dict[str, str]:
    """The headers that are made from the wire formats: names and texts."""
    headers = {"wire.h": wire.c_header()}
    for name in sorted({source.parent.name for source in SYSTEMS.glob("*/*.c")}):
        system = importlib.import_module(f"agglab.hosts.systems.{name}.wire")
        headers[f"{name}_wire.h"] = system.c_header()
    return headers


def _key(compiler: str, flags: Sequence[str], sources: Sequence[Path]) -> str:
    found = os.stat(compiler)
    parts = [compiler, str(found.st_size), str(found.st_mtime_ns), *flags, _processor()]
    parts += [*_generated().values(), *(source.read_text() for source in sources)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _compile(compiler: str, flags: Sequence[str], target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        for name, text in _generated().items():
            (Path(scratch) / name).write_text(text)
        built = Path(scratch) / target.name
        sources = [str(source) for source in _sources(".c")]
        command = [compiler, *flags, f"-I{scratch}", f"-I{SOURCES}", "-o", str(built), *sources]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise BuildError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
        os.replace(built, target)


def _check_own(folder: Path) -> None:
    """Refuses a folder of another user, because its files are loaded as code."""
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BuildError(
            f"{folder}: others may write to it, and what is there is loaded as code: set"
            " AGGLAB_CACHE to a folder that only you can write to"
        )


def build(sanitize: bool = False) -> Path:
    """The path of the shared object, built if the cache has none. Processes that ask at once wait
    for the first. Raises BuildError."""
    compiler = _compiler()
    flags = [*FLAGS, *(SANITIZE if sanitize else ())]
    folder = cache_folder()
    sources = [*_sources(".c"), *_sources(".h")]
    target = folder / f"hosts-{_key(compiler, flags, sources)}.so"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_own(folder)
        if target.exists():
            return target
        with open(folder / "hosts.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                _compile(compiler, flags, target)
    except OSError as error:
        raise BuildError(f"cannot build in {folder}: {error}; set AGGLAB_CACHE") from error
    return target


def built() -> Path:
    """The path of what `load` takes: AGGLAB_SANITIZE chooses. Built if the cache has none."""
    return build(sanitize=os.environ.get("AGGLAB_SANITIZE") == "1")


Signatures = Mapping[str, tuple[type | None, Sequence[type]]]
"""The signatures of functions by name: the result, and the arguments."""

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
    "worker_begin": (None, [_P, _I64]),
    "worker_results": (_U32, [_P, _I64, _P, _U64, _P, _U32]),
    "worker_poll": (_INT, [_P, _I64]),
    "worker_layout": (_U32, []),
    "io_new": (_P, [_INT, _P, _U64, _P, _P, _U32, _P, _P, _U32, _U32]),
    "recovery_layout": (_U32, []),
    "io_free": (None, [_P]),
    "io_receive": (_INT, [_P, _I64, _I64]),
    "io_send": (_INT, [_P, _P, _P, _U32]),
    "io_last_error": (_INT, [_P]),
    "io_network_errors": (_U64, [_P]),
    "io_unsent": (_U64, [_P]),
    "io_strangers": (_U64, [_P]),
}


@functools.cache
def load() -> ctypes.CDLL:
    """The helper, built if need be. Calls into it release the interpreter's lock."""
    return _declare(ctypes.CDLL(str(built())), _SIGNATURES)


def load_system(signatures: Signatures) -> ctypes.CDLL:
    """The same with a system's own functions declared."""
    return _declare(load(), signatures)


def _declare(library: ctypes.CDLL, signatures: Signatures) -> ctypes.CDLL:
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
