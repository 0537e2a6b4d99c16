"""Compiles the C text of a program, into a library or into an executable with sanitizers."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from p4native.common import c_build
from p4native.common.c_build import NATIVE
from p4native.switch.errors import PipelineError

RUNTIME = Path(__file__).resolve().parent / "runtime"
PART = "switch"
"""The folder of the cache that holds programs and the packet loop."""
OPTIMISED = ("-O3", NATIVE)
QUICK = ("-O0", NATIVE)
SANITIZED = ("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Faster, with names of functions in reports; for millions of packets.
FUZZED = ("-O1", *SANITIZED[1:], "-fno-omit-frame-pointer")
COMMON = ("-std=gnu11", "-fno-strict-aliasing", "-pthread")
QUIET = ("-w",)
# A program may compare what never differs and compute what it does not use.
USELESS = (
    *("type-limits", "tautological-compare", "bool-compare", "sign-compare"),
    *("unused-variable", "unused-but-set-variable"),
)
STRICT = ("-Wall", "-Wextra", "-Werror", *(f"-Wno-{name}" for name in USELESS))


@lru_cache(maxsize=1)
def runtime_texts() -> dict[str, bytes]:
    """Returns the runtime's sources, which every program includes, by name. They are kept in
    memory, because a switch that has dropped its privileges may not be able to open them any
    more."""
    return c_build.read(RUNTIME.glob("*.[ch]"))


@lru_cache(maxsize=1)
def runtime_digest() -> str:
    """Returns a hash of the runtime's sources."""
    return c_build.digest(runtime_texts())


def build_library(source: str, strict: bool = False, quick: bool = False) -> Path:
    """Returns the shared object of a program's C text, from the cache if it is there.

    quick: whether to compile in a quarter of the time, which pays off if only a few packets follow.
    """
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
    """Returns an executable with address and undefined-behavior sanitizers. The source must have a
    main()."""
    return build(source, (*SANITIZED, *COMMON, *STRICT), "")


def build_fuzzer(source: str) -> Path:
    """Returns the same as build_program, but compiled with some optimization."""
    return build(source, (*FUZZED, *COMMON, *QUIET), "")


def build(source: str, flags: tuple[str, ...], suffix: str) -> Path:
    """Compiles a program's C text and keeps the text next to the result. Raises PipelineError."""
    texts = {"program.c": source.encode(), **runtime_texts()}
    content = source + runtime_digest()
    try:
        target = c_build.build(PART, ["program.c"], flags, suffix, content, texts)
    except c_build.CompileError as error:
        kept = c_build.cache_folder() / PART / "failed.c"
        kept.write_text(source)
        raise PipelineError(f"{error} (the generated {kept.resolve()})") from None
    except c_build.BuildError as error:
        raise PipelineError(str(error)) from None
    text = target.with_suffix(".c")
    if not text.exists():
        text.write_text(source)
    return target
