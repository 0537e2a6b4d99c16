"""Compiles the packet loop's C once per machine; the shared object is cached by content hash."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = ("loop.c", "port.c", "offload.c", "pcap.c")
HEADERS = ("loop.h", "port.h", "offload.h", "pcap.h", "../runtime/pipeline.h")
FLAGS = (
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-O3",
    "-march=native",
    "-fPIC",
    "-shared",
    "-pthread",
)


class BuildError(Exception):
    """The C compiler is missing or refused the source; one line."""


def cache_folder() -> Path:
    """Where compiled objects are kept: $AGGLAB_CACHE, $XDG_CACHE_HOME/agglab or ~/.cache/agglab."""
    if folder := os.environ.get("AGGLAB_CACHE"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "agglab"


def _cpu_model() -> str:
    """What -march=native depends on, so that a cache on a shared disk serves several machines."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return line
    except OSError:
        pass
    return platform.machine()


def _flags() -> tuple[str, ...]:
    """AGGLAB_CFLAGS adds to the flags: the tests build with sanitizers."""
    return FLAGS + tuple(os.environ.get("AGGLAB_CFLAGS", "").split())


def _content_hash() -> str:
    digest = hashlib.sha256(" ".join(_flags()).encode())
    digest.update(_cpu_model().encode())
    for name in SOURCES + HEADERS:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()[:24]


def _compile(target: Path) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise BuildError("no C compiler: install gcc (apt-get install gcc libc6-dev)")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        built = Path(folder) / target.name
        sources = (str(HERE / name) for name in SOURCES)
        command = [compiler, *_flags(), "-o", str(built), *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            first = done.stderr.strip().splitlines()[:1]
            raise BuildError(f"{compiler} cannot compile the packet loop: {''.join(first)}")
        built.rename(target)


def loop_library() -> Path:
    """The packet loop's shared object, compiled if this machine has not done so before."""
    folder = cache_folder()
    target = folder / f"packet-loop-{_content_hash()}.so"
    if not target.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BuildError(f"cannot make the cache folder {folder}: {error.strerror}") from None
        _compile(target)
    return target
