"""Compiler and switch by name, ours and the field's; a tool not on PATH skips the test by name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import needs

from p4native.bmv2.engine import TOOLS, Bmv2
from p4native.stf import Binder, Run, parse, run_stf

COMPILERS = {
    "p4c": ["p4c-bm2-ss", "--p4v", "16"],
    "agglab": [sys.executable, "-m", "p4native.compiler"],
}


def need(*tools: str) -> None:
    for tool in tools:
        if not shutil.which(tool):
            needs.skip_lacking(f"the program {tool}", needs.PEERS)


def need_pair(compiler: str, target: str) -> None:
    """Skips the test if a tool of the pair is missing, before anything is compiled for it."""
    need(COMPILERS[compiler][0], *(TOOLS if target == "bmv2" else ()))


def compile_with(compiler: str, program: Path, json_path: Path, flags: Sequence[str] = ()) -> None:
    command = COMPILERS[compiler]
    need(command[0])
    command = [*command, *flags, str(program), "-o", str(json_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"does not compile\n{done.stderr}"


def run_on(target: str, json_path: Path, script: Path) -> list[str]:
    """What failed of `script` on our switch library, or on BMv2."""
    if target == "agglab":
        return run_stf(json_path, script).failures
    need(*TOOLS)
    commands = parse(script.read_text())
    binder = Binder(json.loads(json_path.read_text()))
    with (
        tempfile.TemporaryDirectory() as folder,
        Bmv2(json_path.resolve(), Path(folder), commands) as engine,
    ):
        return Run(binder, engine).execute(commands)
