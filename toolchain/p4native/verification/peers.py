"""Checks whether the reference compiler and switch (p4c and BMv2) can be run, if they are on PATH.
Each is tried once with a small program."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from p4native import FOLDER
from p4native.bmv2 import thrift_cli
from p4native.bmv2.errors import ControlError, CouldNotRun
from p4native.bmv2.thrift_cli import ThriftCli
from p4native.common.printable import one_line

P4C = "p4c-bm2-ss"
GRPC, SWITCH = "simple_switch_grpc", "simple_switch"
OURS = (sys.executable, "-m", "p4native.compiler")
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
    """Returns the last line of a program's output, for use in a one-line message."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return one_line(lines[-1], 200) if lines else "it printed nothing"


def try_p4c() -> None:
    """Raises CouldNotRun if the p4c on PATH cannot compile the small program."""
    with tempfile.TemporaryDirectory(prefix="p4native-peer-") as folder:
        _compile([P4C, "--p4v", "16"], P4C, Path(folder))


def try_bmv2() -> None:
    """Raises CouldNotRun if simple_switch or its command line does not start. Both must be on
    PATH."""
    with tempfile.TemporaryDirectory(prefix="p4native-peer-") as folder:
        program = _compile(OURS, "python -m p4native.compiler", Path(folder))
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
    """Raises CouldNotRun if the program cannot even print its version. It must be on PATH."""
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
            cwd=FOLDER.parent,
        )
    except subprocess.TimeoutExpired:
        raise CouldNotRun(name, f"no answer within {PATIENCE_S:g} s") from None
    except OSError as error:
        raise CouldNotRun(name, str(error.strerror)) from None
    if done.returncode != 0:
        raise CouldNotRun(name, last_line(done.stdout + done.stderr))


def _listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Returns whether a program starts to listen on the port before the process ends and within
    PATIENCE_S seconds."""
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
    """Returns why BMv2 on PATH cannot be run; empty if it can be run or is not installed."""
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
    """Returns why p4c on PATH cannot be run; empty if it can be run or is not installed."""
    try:
        if shutil.which(P4C):
            try_p4c()
    except CouldNotRun as trouble:
        return str(trouble)
    return ""
