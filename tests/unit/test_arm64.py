"""The C parts compile for ARM64 without a warning, where there is a compiler for it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import needs
import pytest

from agglab.hosts import library
from agglab.testbed.run.programs.program import compile_program
from p4native.common import c_build
from p4native.switch import build
from p4native.switch.io import build as loop
from p4native.switch.program import Program
from p4native.switch.translate import translate

COMPILERS = {
    "aarch64-linux-gnu-gcc": [],
    # Its headers are those of the other compiler's package.
    "clang": ["--target=aarch64-linux-gnu", "-isystem", "/usr/aarch64-linux-gnu/include"],
}
ROOT = Path(__file__).resolve().parents[2]


def complaints(compiler: str, flags: Sequence[str], sources: Sequence[Path]) -> str:
    """What the compiler says of the sources; the flags are those of this machine's builds."""
    needs.require(
        "gcc-aarch64-linux-gnu",
        "libc6-dev-arm64-cross",
        *(["clang"] if compiler == "clang" else []),
    )
    flags = [flag for flag in flags if flag not in (c_build.NATIVE, "-shared")]
    command = [compiler, *COMPILERS[compiler], *flags, "-fsyntax-only", *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr or str(done.returncode or "")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_packet_loop(compiler: str) -> None:
    folders = [f"-I{loop.HERE}", f"-I{build.RUNTIME}"]
    flags = [*c_build.LIBRARY, *loop.FLAGS, *folders]
    assert complaints(compiler, flags, sorted(loop.HERE.glob("*.c"))) == ""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_hosts_helper(compiler: str, tmp_path: Path) -> None:
    for name, text in library.HEADERS.items():
        (tmp_path / name).write_bytes(text)
    flags = [*c_build.LIBRARY, *library.FLAGS, f"-I{tmp_path}"]
    assert complaints(compiler, flags, sorted(library.SOURCES.glob("*.c"))) == ""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_is_made_of_a_program(compiler: str, tmp_path: Path) -> None:
    json = compile_program(ROOT / "p4" / "switchml.p4", "agglab", {"LANES": 256, "SLOTS": 512}).json
    (tmp_path / "program.c").write_text(translate(Program.read(json)))
    warnings = build.QUIET if compiler == "clang" else build.STRICT
    flags = [*build.OPTIMISED, *build.COMMON, f"-I{build.RUNTIME}", *warnings]
    assert complaints(compiler, flags, [tmp_path / "program.c"]) == ""
