"""The system's C compiler, and a cache of what it made."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from switch.errors import PipelineError

RUNTIME = Path(__file__).resolve().parent / "runtime"
OPTIMISED = ("-O3", "-march=native")
QUICK = ("-O0", "-march=native")
SANITIZED = ("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMMON = ("-std=gnu11", "-fno-strict-aliasing", "-pthread", f"-I{RUNTIME}")
QUIET = ("-w",)
# A program may compare what never differs and compute what it does not use.
USELESS = (
    *("type-limits", "tautological-compare", "bool-compare", "sign-compare"),
    *("unused-variable", "unused-but-set-variable"),
)
STRICT = ("-Wall", "-Wextra", "-Werror", *(f"-Wno-{name}" for name in USELESS))


def cache_directory() -> Path:
    """$AGGLAB_CACHE, else agglab in the user's cache directory."""
    chosen = os.environ.get("AGGLAB_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "agglab"


@lru_cache(maxsize=1)
def compiler() -> tuple[str, str]:
    """The path of cc and what tells its builds apart: version and what -march=native means."""
    path = shutil.which("cc") or shutil.which("gcc")
    if path is None:
        raise PipelineError("no C compiler: install gcc (apt-get install gcc)")
    command = [path, "-march=native", "-Q", "--help=target"]
    target = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return path, version.stdout + target


@lru_cache(maxsize=1)
def runtime_digest() -> str:
    """A hash of the runtime's sources, which every program includes."""
    digest = hashlib.sha256()
    for path in sorted(RUNTIME.glob("*.[ch]")):
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


def build(source: str, flags: tuple[str, ...], suffix: str) -> Path:
    path, identity = compiler()
    parts = (source, " ".join(flags), path, identity, runtime_digest())
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    directory = cache_directory() / "switch"
    target = directory / f"{key}{suffix}"
    if target.exists():
        return target
    try:
        directory.mkdir(parents=True, exist_ok=True)
        compile_to(target, source, [path, *flags])
    except OSError as error:
        raise PipelineError(f"{directory}: cannot be written: {error}") from None
    return target


def compile_to(target: Path, source: str, command: list[str]) -> None:
    """Compile beside the target and rename, so that others see all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        text = Path(scratch) / "program.c"
        text.write_text(source)
        made = Path(scratch) / "made"
        arguments = [*command, "-o", str(made), str(text)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode:
            kept = target.with_suffix(".failed.c")
            kept.write_text(source)
            first = next((x for x in done.stderr.splitlines() if "error" in x), done.stderr[:200])
            raise PipelineError(f"{command[0]} failed on the generated {kept}: {first}")
        made.replace(target)
        target.with_suffix(".c").write_text(source)
