"""Compiles the packet loop's C once per machine; the shared object is cached by content hash."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from switch.build import cache_directory, compiler
from switch.errors import PipelineError

HERE = Path(__file__).resolve().parent
SOURCES = ("loop.c", "port.c", "drop.c", "offload.c", "pcap.c")
HEADERS = ("loop.h", "port.h", "drop.h", "offload.h", "pcap.h", "../runtime/pipeline.h")
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
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""Added when AGGLAB_SANITIZE is 1; the process then needs libasan preloaded."""


class BuildError(Exception):
    """The C compiler is missing or refused the source; one line."""


def loop_library() -> Path:
    """The packet loop's shared object, compiled if this machine has not done so before."""
    flags = FLAGS + (SANITIZED if os.environ.get("AGGLAB_SANITIZE") == "1" else ())
    try:
        path, identity = compiler()
    except PipelineError as error:
        raise BuildError(str(error)) from None
    folder = cache_directory() / "switch"
    target = folder / f"packet-loop-{_content_hash(' '.join(flags) + identity)}.so"
    if not target.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BuildError(f"{folder}: cannot be written: {error.strerror}") from None
        _compile([path, *flags], target)
    return target


def _content_hash(flags: str) -> str:
    digest = hashlib.sha256(flags.encode())
    for name in SOURCES + HEADERS:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()[:32]


def _compile(command: list[str], target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        built = Path(folder) / target.name
        sources = (str(HERE / name) for name in SOURCES)
        done = subprocess.run(
            [*command, "-o", str(built), *sources], capture_output=True, text=True, check=False
        )
        if done.returncode:
            first = next((x for x in done.stderr.splitlines() if "error" in x), done.stderr[:200])
            raise BuildError(f"{command[0]} cannot compile the packet loop: {first}")
        built.rename(target)
