"""Pairs of a compiler and a switch: our own, and p4c and BMv2 if they are installed."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4native.bmv2.engine import missing_tools
from p4native.bmv2.errors import CouldNotRun
from p4native.common.processes import exit_in_words
from p4native.compiler.command import main as our_compiler
from p4native.verification import peers

COMPILERS, SWITCHES = ("p4c", "p4native"), ("bmv2", "native")
"""The names of the compilers and switches. p4c and BMv2 come first, because ours are compared with
them where they are installed."""


class DoesNotCompile(Exception):
    """Raised if a compiler refuses a program. The text is the compiler's messages."""


@dataclass(frozen=True)
class Pair:
    """The names of a compiler and of a switch, which are among COMPILERS and SWITCHES."""

    compiler: str
    switch: str

    def __str__(self) -> str:
        return f"{self.compiler} + {self.switch}"


SPECIFICATION = Pair("front end", "interpreter")
"""A pair that stands for the language's specification: our front end and the interpreter. It is
available on every machine. Only random programs are compared with it."""


def absent() -> dict[str, str]:
    """Returns the compilers and switches that are not on this machine, each with what is missing
    for it."""
    lacking = {
        "p4c": [peers.P4C] if shutil.which(peers.P4C) is None else [],
        "bmv2": missing_tools(),
    }
    return {name: ", ".join(tools) for name, tools in lacking.items() if tools}


def broken() -> dict[str, str]:
    """Returns the compilers and switches that are on this machine but do not run, each with its
    error message."""
    missing = absent()
    found = {
        "p4c": "" if "p4c" in missing else peers.p4c_trouble(),
        "bmv2": "" if "bmv2" in missing else peers.bmv2_trouble(),
    }
    return {name: trouble for name, trouble in found.items() if trouble}


def present(without: Collection[str]) -> list[Pair]:
    """Returns all pairs of a compiler and a switch that are installed. The first is the reference
    with which the others are compared. without: the compilers and switches to leave out because
    they do not run."""
    missing = {*absent(), *without}
    compilers = [name for name in COMPILERS if name not in missing]
    switches = [name for name in SWITCHES if name not in missing]
    return [Pair(compiler, switch) for compiler in compilers for switch in switches]


def compile_with(compiler: str, program: Path, json_path: Path, flags: Sequence[str]) -> None:
    """Compiles a program. Raises DoesNotCompile, or CouldNotRun if p4c crashes. It must not be
    called in threads, because it redirects the stderr of the whole process."""
    words = [*flags, str(program), "-o", str(json_path)]
    if compiler == "p4c":
        done = subprocess.run([peers.P4C, "--p4v", "16", *words], capture_output=True, text=True)
        if done.returncode < 0:
            raise CouldNotRun(peers.P4C, f"it {exit_in_words(done.returncode)}")
        if done.returncode != 0:
            raise DoesNotCompile(done.stderr.strip())
        return
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = our_compiler(words)
    if code != 0:
        raise DoesNotCompile(said.getvalue().strip())
