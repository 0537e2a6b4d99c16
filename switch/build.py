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

from agglab.switch.errors import PipelineError
from agglab.switch.folders import why_not_ours

RUNTIME = Path(__file__).resolve().parent / "runtime"
# On ARM64 clang 14 has no -march=native, and gcc's does not tune.
NATIVE = "-mcpu=native" if platform.machine() == "aarch64" else "-march=native"
OPTIMISED = ("-O3", NATIVE)
QUICK = ("-O0", NATIVE)
SANITIZED = ("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Faster, with names of functions in reports; for millions of packets.
FUZZED = ("-O1", *SANITIZED[1:], "-fno-omit-frame-pointer")
COMMON = ("-std=gnu11", "-fno-strict-aliasing", "-pthread")
QUIET = ("-w",)
LIMIT_S = 600
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
def runtime_texts() -> dict[str, bytes]:
    """The runtime's sources, which every program includes, by name. Kept: a switch that has dropped
    its privileges may not be able to open them any more."""
    return _texts(RUNTIME.glob("*.[ch]"))


@lru_cache(maxsize=1)
def runtime_digest() -> str:
    """A hash of the runtime's sources."""
    return _digest(runtime_texts())


def sources_digest(paths: Iterable[Path]) -> str:
    """A hash of files, their names included."""
    return _digest(_texts(paths))


def _texts(paths: Iterable[Path]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(paths)}


def _digest(texts: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, text in texts.items():
        digest.update(name.encode() + b"\0" + text)
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
    """Returns the same as build_program, slightly optimised."""
    return build(source, (*FUZZED, *COMMON, *QUIET), "")


def build(source: str, flags: tuple[str, ...], suffix: str) -> Path:
    """Compiles a program's C text and keeps the text beside the result."""
    target = _target(flags, suffix, source + runtime_digest())
    if target.exists():
        return target
    texts = {"program.c": source.encode(), **runtime_texts()}
    try:
        _compile(target, flags, ["program.c"], texts)
    except CompileError as error:
        kept = target.parent / "failed.c"
        kept.write_text(source)
        raise PipelineError(f"{error} (the generated {kept.resolve()})") from None
    target.with_suffix(".c").write_text(source)
    return target


def build_files(sources: Sequence[Path], flags: tuple[str, ...], suffix: str, content: str) -> Path:
    """Returns the path of the compiled sources, compiling them unless the cache has them. The
    cache's key is `content` together with the flags and the compiler."""
    target = _target(flags, suffix, content)
    if not target.exists():
        _compile(target, flags, [str(path.resolve()) for path in sources], {})
    return target


def _target(flags: tuple[str, ...], suffix: str, content: str) -> Path:
    """Returns the path in the cache of what this input is, or will be, compiled to."""
    path, identity = compiler()
    parts = (content, " ".join(flags), path, identity)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return _cache() / f"{key}{suffix}"


def _cache() -> Path:
    """Returns the cache's folder and makes it if it does not exist. Its files are loaded as code:
    PipelineError if another user could have put files there."""
    folder = cache_directory() / "switch"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PipelineError(f"{folder}: cannot be written: {error.strerror}") from None
    for path in (cache_directory(), folder):
        why = why_not_ours(path, follow_link=True)
        if why is not None:
            raise PipelineError(
                f"{path}: {why}, and what is there is loaded as code: set AGGLAB_CACHE to a folder"
                " that only you can write to"
            )
    return folder


def _run(command: list[str], folder: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
    except OSError as error:
        # A switch that has become another user may not be allowed to run what root may.
        raise PipelineError(f"{command[0]} cannot be run: {error.strerror}") from None


def _compile(
    target: Path, flags: tuple[str, ...], sources: Sequence[str], texts: dict[str, bytes]
) -> None:
    """Compile beside the target and rename, so that others see all of it or nothing. The compiler
    works in a folder that holds `texts` by name, and paths are told it relative to that one."""
    command = [compiler()[0], *flags, *sources, "-o", "made"]
    try:
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            for name, text in texts.items():
                (Path(scratch) / name).write_bytes(text)
            done = _run(command, scratch)
            if done.returncode:
                said = (line for line in done.stderr.splitlines() if "error" in line)
                raise CompileError(f"{command[0]} failed: {next(said, done.stderr[:200])}")
            (Path(scratch) / "made").replace(target)
    except subprocess.TimeoutExpired:
        raise CompileError(f"{command[0]} took more than {LIMIT_S} s") from None
    except OSError as error:
        raise PipelineError(f"{target.parent}: cannot be written: {error.strerror}") from None
