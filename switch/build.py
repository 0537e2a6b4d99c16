"""The system's C compiler, and a cache of what it made (programs here, the packet loop in io/)."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from switch.errors import PipelineError

RUNTIME = Path(__file__).resolve().parent / "runtime"
# On ARM64 clang 14 has no -march=native, and gcc's does not tune.
NATIVE = "-mcpu=native" if platform.machine() == "aarch64" else "-march=native"
OPTIMISED = ("-O3", NATIVE)
QUICK = ("-O0", NATIVE)
SANITIZED = ("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Faster, with names of functions in reports; for millions of packets.
FUZZED = ("-O1", *SANITIZED[1:], "-fno-omit-frame-pointer")
COMMON = ("-std=gnu11", "-fno-strict-aliasing", "-pthread", f"-I{RUNTIME}")
QUIET = ("-w",)
# A program may compare what never differs and compute what it does not use.
USELESS = (
    *("type-limits", "tautological-compare", "bool-compare", "sign-compare"),
    *("unused-variable", "unused-but-set-variable"),
)
STRICT = ("-Wall", "-Wextra", "-Werror", *(f"-Wno-{name}" for name in USELESS))


class CompileError(PipelineError):
    """The compiler refused what it was given."""


def cache_directory() -> Path:
    """$AGGLAB_CACHE, else agglab in the user's cache directory."""
    chosen = os.environ.get("AGGLAB_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "agglab"


@lru_cache(maxsize=1)
def compiler() -> tuple[str, str]:
    """The path of cc and what tells its builds apart: version and what NATIVE means."""
    path = shutil.which("cc") or shutil.which("gcc")
    if path is None:
        raise PipelineError("no C compiler: install gcc (apt-get install gcc)")
    command = [path, NATIVE, "-Q", "--help=target"]
    target = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return path, version.stdout + target


@lru_cache(maxsize=1)
def runtime_digest() -> str:
    """A hash of the runtime's sources, which every program includes."""
    return sources_digest(RUNTIME.glob("*.[ch]"))


def sources_digest(paths: Iterable[Path]) -> str:
    """A hash of files, their names included."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def build_library(source: str, strict: bool = False, quick: bool = False) -> Path:
    """The shared object of a program's C text, from the cache if it is there. quick: made in a
    quarter of the time, for a few packets."""
    warnings = STRICT if strict else QUIET
    flags = (
        *(QUICK if quick else OPTIMISED),
        *COMMON,
        *warnings,
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
    )
    return build(source, flags, ".so")


def build_program(source: str) -> Path:
    """An executable with address and undefined-behaviour sanitizers; `source` has a main()."""
    return build(source, (*SANITIZED, *COMMON, *STRICT), "")


def build_fuzzer(source: str) -> Path:
    """As build_program, optimised a little."""
    return build(source, (*FUZZED, *COMMON, *QUIET), "")


def build(source: str, flags: tuple[str, ...], suffix: str) -> Path:
    """Compile a program's C text, which stays beside what was made of it."""
    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch) / "program.c"
        text.write_text(source)
        try:
            target, new = build_files([text], flags, suffix, source + runtime_digest())
        except CompileError as error:
            kept = cache_directory() / "switch" / "failed.c"
            kept.write_text(source)
            raise PipelineError(f"{error} (the generated {kept})") from None
        if new:
            target.with_suffix(".c").write_text(source)
    return target


def build_files(
    sources: Sequence[Path], flags: tuple[str, ...], suffix: str, content: str
) -> tuple[Path, bool]:
    """What the compiler makes of the sources, from the cache if it is there, and whether it is new.
    `content` tells them apart from all others, together with flags and compiler."""
    path, identity = compiler()
    parts = (content, " ".join(flags), path, identity)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    target = cache_directory() / "switch" / f"{key}{suffix}"
    if target.exists():
        return target, False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _compile_to(target, [path, *flags, *map(str, sources)])
    except OSError as error:
        raise PipelineError(f"{target.parent}: cannot be written: {error.strerror}") from None
    return target, True


def _compile_to(target: Path, command: list[str]) -> None:
    """Compile beside the target and rename, so that others see all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / "made"
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True)
        if done.returncode:
            first = next((x for x in done.stderr.splitlines() if "error" in x), done.stderr[:200])
            raise CompileError(f"{command[0]} failed: {first}")
        made.replace(target)
