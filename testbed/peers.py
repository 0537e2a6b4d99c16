"""Whether the field's compiler and switch, where they are on PATH, also run here: each is tried
once with a small program. One that does not is no witness against ours."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from agglab.testbed import thrift_cli
from agglab.testbed.errors import ControlError, CouldNotRun
from agglab.testbed.paths import REPOSITORY
from agglab.testbed.program import compiler_command
from agglab.testbed.scenario.errors import one_line
from agglab.testbed.thrift_cli import ThriftCli

P4C = "p4c-bm2-ss"
GRPC, SWITCH = "simple_switch_grpc", "simple_switch"
PATIENCE_S = 30.0
SMALL = """#include <core.p4>
#include <v1model.p4>
struct none {}
parser P(packet_in p, out none h, inout none m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control C(inout none h, inout none m) { apply {} }
control I(inout none h, inout none m, inout standard_metadata_t s) { apply { s.egress_spec = 1; } }
control E(inout none h, inout none m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in none h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def last_line(said: str) -> str:
    """What a program said last, for one line of ours."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return one_line(lines[-1], 200) if lines else "it said nothing"


def try_p4c() -> None:
    """Raise CouldNotRun if the p4c on PATH cannot compile the small program."""
    with tempfile.TemporaryDirectory(prefix="agglab-peer-") as folder:
        _compile([P4C, "--p4v", "16"], P4C, Path(folder))


def try_bmv2() -> None:
    """Raise CouldNotRun if simple_switch or its command line, both on PATH, does not start."""
    with tempfile.TemporaryDirectory(prefix="agglab-peer-") as folder:
        program = _compile(compiler_command("agglab"), "python -m agglab.compiler", Path(folder))
        log, port = Path(folder) / "log", _free_port()
        command = [SWITCH, "--use-files", "0", "--thrift-port", str(port), str(program)]
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
        except OSError as error:
            raise CouldNotRun(SWITCH, str(error.strerror)) from None
        try:
            if not _listens(port, process):
                raise CouldNotRun(SWITCH, last_line(log.read_text(errors="replace")))
            _try_cli(port)
        finally:
            process.kill()
            process.wait()


def try_version(program: str) -> None:
    """Raise CouldNotRun if the program, on PATH, cannot even say which version it is."""
    _run([program, "--version"], program)


def _try_cli(port: int) -> None:
    try:
        with ThriftCli(port) as cli:
            cli.command("mc_mgrp_create 1")
    except (ControlError, OSError) as error:
        raise CouldNotRun(thrift_cli.PROGRAM, last_line(str(error))) from None


def _compile(command: Sequence[str], name: str, folder: Path) -> Path:
    source, program = folder / "small.p4", folder / "small.json"
    source.write_text(SMALL)
    _run([*command, str(source), "-o", str(program)], name)
    return program


def _run(command: Sequence[str], name: str) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            cwd=REPOSITORY,
        )
    except subprocess.TimeoutExpired:
        raise CouldNotRun(name, f"no answer within {PATIENCE_S:g} s") from None
    except OSError as error:
        raise CouldNotRun(name, str(error.strerror)) from None
    if done.returncode != 0:
        raise CouldNotRun(name, last_line(done.stdout + done.stderr))


def _listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Whether somebody answers at the port before the process ends or patience does."""
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.01)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bmv2_trouble() -> str:
    """Why a BMv2 on PATH could not run; empty if it can, or is not there."""
    try:
        if shutil.which(GRPC):
            try_version(GRPC)
        if shutil.which(SWITCH) and shutil.which(thrift_cli.PROGRAM):
            try_bmv2()
        elif shutil.which(SWITCH):
            try_version(SWITCH)
    except CouldNotRun as trouble:
        return str(trouble)
    return ""


def p4c_trouble() -> str:
    """Why a p4c on PATH could not run; empty if it can, or is not there."""
    try:
        if shutil.which(P4C):
            try_p4c()
    except CouldNotRun as trouble:
        return str(trouble)
    return ""
