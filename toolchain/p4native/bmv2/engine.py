"""BMv2's simple_switch as an Engine for packet tests. Frames pass through pcap files and FIFOs, and
commands through simple_switch_CLI. It needs no interface and no root.

A packet enters when the script sends it and not before (bmv2_inputs.py), so checks in the middle of
a script see the effects of the packets before them. All packets count as received when nothing has
come out for a while, in which no thread of simple_switch was running or waiting for a processor.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from p4native.bmv2 import thrift_cli
from p4native.bmv2.errors import ControlError, CouldNotRun
from p4native.bmv2.inputs import PCAP_HEADER_BYTES, RECORD_HEADER_BYTES, Inputs
from p4native.bmv2.thrift_cli import ThriftCli
from p4native.common.processes import exit_in_words
from p4native.stf.frames import Expect, Packet, StfError
from p4native.stf.names import Match
from p4native.stf.script import Command

PROGRAM = "simple_switch"
TOOLS = (PROGRAM, thrift_cli.PROGRAM)
QUIET_S = 0.1
START_S = 20.0
BUSY = ("R", "D")
"""The busy states of a thread in /proc: running or ready to run, and waiting for a disk."""
PRIORITY_MAX = 10_000
FIRST_PORT, PORT_COUNT, PORT_STEP = 20_000, 10_000, 7
FIRST_EPHEMERAL_PORT = 32_768


def missing_tools() -> list[str]:
    """Returns the tools of BMv2 that are not on PATH."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


class Bmv2:
    """One simple_switch process, which must be used as a context manager.

    folder: an empty folder for its files. commands: the script; the switch opens the ports that it
    uses. quiet_s: how long no packet must come out before all packets count as received. Raises
    StfError if the switch does not start with this program or refuses a command. Raises CouldNotRun
    if the switch dies or its command line does not start.
    """

    def __init__(
        self,
        json_path: Path,
        folder: Path,
        commands: Sequence[Command],
        quiet_s: float = QUIET_S,
    ) -> None:
        self._folder = folder
        self._quiet_s = quiet_s
        self._sent = False
        self._indirect: set[str] = set()
        self._ports = sorted({c.port for c in commands if isinstance(c, (Packet, Expect))})
        packets = [command for command in commands if isinstance(command, Packet)]
        self._inputs = Inputs(folder, self._ports, packets)
        self._seen = dict.fromkeys(self._ports, 0)
        self._thrift_port = _free_port()
        self._cli: ThriftCli | None = None
        self._process = self._start(json_path)
        self._wait_until_ready()

    def __enter__(self) -> Bmv2:
        return self

    def __exit__(self, *_: object) -> None:
        if self._cli is not None:
            self._cli.close()
        self._process.kill()
        self._process.wait()
        self._inputs.close()

    def _start(self, json_path: Path) -> subprocess.Popen[bytes]:
        command = [PROGRAM, "--use-files", "0", "--thrift-port", str(self._thrift_port)]
        for port in self._ports:
            command += ["-i", f"{port}@{self._folder}/port{port}"]
        with self._log().open("wb") as log:
            return subprocess.Popen(
                [*command, str(json_path)], stdout=log, stderr=log, cwd=self._folder
            )

    def _log(self) -> Path:
        return self._folder / "switch.log"

    def _wait_until_ready(self) -> None:
        """Waits for the Thrift server, which only listens when every interface is open."""
        deadline = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._thrift_port)) == 0:
                    return
            time.sleep(0.01)
        status = self._process.poll()
        self.__exit__()
        said = self._log().read_text(errors="replace").strip()[-2000:]
        how = f"exit code {status}" if status is not None else f"silent for {START_S:g} s"
        raise StfError(f"{PROGRAM} did not start ({how}):\n{said}")

    def send(self, port: int, frame: bytes) -> None:
        self._sent = True
        self._inputs.send(port, frame)

    def received(self) -> list[tuple[int, bytes]]:
        """Waits until no more packets have come out for a while. Returns those that came out since
        the last call."""
        self.wait()
        new = []
        for port in self._ports:
            frames = _read_pcap(self._output(port))
            new += [(port, frame) for frame in frames[self._seen[port] :]]
            self._seen[port] = len(frames)
        status = self._process.poll()
        if status is not None:
            said = self._log().read_text(errors="replace").splitlines() or ["it said nothing"]
            raise CouldNotRun(PROGRAM, f"it {exit_in_words(status)}: {said[-1]}")
        return new

    def wait(self) -> None:
        size, since = -1, time.monotonic()
        while time.monotonic() - since < self._quiet_s:
            outputs = [self._output(port) for port in self._ports]
            now = sum(path.stat().st_size for path in outputs if path.exists())
            if now != size or self._is_busy():
                size, since = now, time.monotonic()
            time.sleep(0.02)

    def _is_busy(self) -> bool:
        """Whether one of the switch's threads is running, or waiting for a processor or a disk."""
        for stat in Path(f"/proc/{self._process.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):  # a thread that has ended
                if stat.read_text().rpartition(")")[2].split()[0] in BUSY:
                    return True
        return False

    def _output(self, port: int) -> Path:
        return self._folder / f"port{port}_out.pcap"

    def _command(self, line: str) -> str:
        """Runs a command of simple_switch_CLI after the packets sent before it have passed through
        the switch."""
        try:
            if self._cli is None:
                self._cli = self._connect()
            if self._sent:
                self.wait()
            return self._cli.command(line)
        except ControlError as refused:
            raise StfError(str(refused)) from None

    def _connect(self) -> ThriftCli:
        try:
            return ThriftCli(self._thrift_port)
        except (ControlError, OSError) as error:
            raise CouldNotRun(thrift_cli.PROGRAM, str(error)) from None

    def add(
        self, table: str, keys: list[Match], action: str, args: list[int], priority: int
    ) -> int:
        line = f"table_add {table} {action} {' '.join(map(_key, keys))} => "
        line += " ".join(map(hex, args)) + _priority(keys, priority)
        return thrift_cli.handle(self._command(line))

    def add_indirect(
        self, table: str, keys: list[Match], group: bool, target: int, priority: int
    ) -> int:
        self._indirect.add(table)
        verb = "table_indirect_add_with_group" if group else "table_indirect_add"
        line = f"{verb} {table} {' '.join(map(_key, keys))} => {target}"
        return thrift_cli.handle(self._command(line + _priority(keys, priority)))

    def add_member(self, profile: str, action: str, args: list[int]) -> int:
        line = f"act_prof_create_member {profile} {action} {' '.join(map(hex, args))}"
        return thrift_cli.handle(self._command(line))

    def add_group(self, profile: str, members: list[int]) -> int:
        group = thrift_cli.handle(self._command(f"act_prof_create_group {profile}"))
        for member in members:
            self._command(f"act_prof_add_member_to_group {profile} {member} {group}")
        return group

    def set_default(self, table: str, action: str, args: list[int]) -> None:
        self._command(f"table_set_default {table} {action} {' '.join(map(hex, args))}")

    def remove(self, table: str, handle: int) -> None:
        verb = "table_indirect_delete" if table in self._indirect else "table_delete"
        self._command(f"{verb} {table} {handle}")

    def direct(self, verb: str, name: str, numbers: tuple[int, ...]) -> str:
        return self._command(" ".join([verb, name, *map(str, numbers)])).strip()

    def set_meter(self, name: str, index: int, rates: tuple[tuple[float, int], ...]) -> None:
        pairs = " ".join(f"{rate:.12f}:{burst}" for rate, burst in rates)
        self._command(f"meter_set_rates {name} {index} {pairs}")

    def set_direct_meter(
        self, table: str, name: str, handle: int, rates: tuple[tuple[float, int], ...]
    ) -> None:
        self.set_meter(name, handle, rates)

    def counter(self, name: str, index: int) -> tuple[int, int]:
        return thrift_cli.counter(self._command(f"counter_read {name} {index}"))

    def register(self, name: str, index: int) -> int:
        return thrift_cli.register(self._command(f"register_read {name} {index}"))


def _priority(keys: list[Match], priority: int) -> str:
    """Returns the priority in BMv2's form, in which the smaller number wins."""
    ordered = any(k.kind in ("ternary", "range", "optional") for k in keys)
    return f" {PRIORITY_MAX - priority}" if ordered else ""


def _key(match: Match) -> str:
    if match.kind == "lpm":
        return f"{match.value:#x}/{match.operand}"
    if match.kind in ("ternary", "optional"):
        return f"{match.value:#x}&&&{match.operand:#x}"
    if match.kind == "range":
        return f"{match.value:#x}->{match.operand:#x}"
    return f"{match.value:#x}"


def _free_port() -> int:
    """Returns a free TCP port below those that the kernel gives to other programs. Each of our
    processes starts its search at a different port."""
    for port in range(FIRST_PORT + os.getpid() * PORT_STEP % PORT_COUNT, FIRST_EPHEMERAL_PORT):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise StfError(f"no TCP port above {FIRST_PORT} is free for {PROGRAM}")


def _read_pcap(path: Path) -> list[bytes]:
    """Returns the complete packets of a capture that may still be growing."""
    data = path.read_bytes() if path.exists() else b""
    at, frames = PCAP_HEADER_BYTES, []
    while at + RECORD_HEADER_BYTES <= len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        end = at + RECORD_HEADER_BYTES + length
        if end > len(data):
            break
        frames.append(data[at + RECORD_HEADER_BYTES : end])
        at = end
    return frames
