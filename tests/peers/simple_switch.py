"""BMv2's simple_switch as an Engine for packet tests: frames through pcap files and FIFOs, control
through simple_switch_CLI, no interface and no root needed.

simple_switch reads its input files strictly by time stamp and waits for the next packet of every
file that has not ended, so a check in the middle of a script is reliable only when all packets of
the script enter by one port.
May import: testbed.stf.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from testbed.stf import Command, Expect, Match, Packet, StfError

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
PROMPT = b"RuntimeCmd: "
QUIET_S = 0.25


class SimpleSwitch:
    """One simple_switch process in `folder`; use it as a context manager."""

    def __init__(self, json_path: Path, folder: Path, commands: Sequence[Command]):
        self.folder = folder
        self.sent = 0
        self.remaining: dict[int, int] = {}
        ports = {c.port for c in commands if isinstance(c, Packet | Expect)}
        for command in commands:
            if isinstance(command, Packet):
                self.remaining[command.port] = self.remaining.get(command.port, 0) + 1
        self.ports = sorted(ports)
        self.inputs = {port: self._make_input(port) for port in self.ports}
        self.seen = dict.fromkeys(self.ports, 0)
        self.thrift_port = _free_port()
        self.log = (folder / "switch.log").open("wb")
        interfaces = [w for p in self.ports for w in ("-i", f"{p}@{folder}/port{p}")]
        command = f"simple_switch --use-files 0 --thrift-port {self.thrift_port}".split()
        self.process = subprocess.Popen(
            [
                *f"simple_switch --use-files 0 --thrift-port {self.thrift_port}".split(),
                *interfaces,
                str(json_path),
            ],
            stdout=self.log,
            stderr=self.log,
            cwd=folder,
        )
        self.cli: subprocess.Popen[bytes] | None = None
        self._wait_until_ready()

    def __enter__(self) -> SimpleSwitch:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self.cli, self.process):
            if process:
                process.terminate()
                process.wait()
        if self.cli:
            self.cli.stdin.close()
            self.cli.stdout.close()
        for fd in self.inputs.values():
            if fd is not None:
                os.close(fd)
        self.log.close()

    def _make_input(self, port: int) -> int | None:
        """A FIFO for a port that packets enter, else an empty capture."""
        path = self.folder / f"port{port}_in.pcap"
        if port not in self.remaining:
            path.write_bytes(PCAP_HEADER)
            return None
        os.mkfifo(path)
        fd = os.open(path, os.O_RDWR)  # read-write: neither side's open waits for the other
        os.write(fd, PCAP_HEADER)
        return fd

    def _wait_until_ready(self, timeout_s: float = 20) -> None:
        """The Thrift server listens only after every interface is open."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.thrift_port)) == 0:
                    return
            time.sleep(0.01)
        code = self.process.poll()
        self.process.kill()
        text = (self.folder / "switch.log").read_text(errors="replace")
        raise StfError(f"simple_switch did not start (exit code {code}):\n{text[-2000:]}")

    # ---- packets ----
    def send(self, port: int, frame: bytes) -> None:
        self.sent += 1  # the time stamp: only its order counts
        head = struct.pack("<IIII", 0, self.sent, len(frame), len(frame))
        fd = self.inputs[port]
        assert fd is not None
        os.write(fd, head + frame)
        self.remaining[port] -= 1
        if self.remaining[port] == 0:
            os.close(fd)
            self.inputs[port] = None

    def received(self) -> list[tuple[int, bytes]]:
        """What came out since the last call, after the output has been quiet for a while."""
        self.wait()
        new = []
        for port in self.ports:
            frames = _read_pcap(self._output(port))
            new += [(port, frame) for frame in frames[self.seen[port] :]]
            self.seen[port] = len(frames)
        if self.process.poll() is not None:
            raise StfError(f"simple_switch died with exit code {self.process.returncode}")
        return new

    def wait(self) -> None:
        size, since = -1, time.monotonic()
        while time.monotonic() - since < QUIET_S:
            now = sum(
                self._output(p).stat().st_size for p in self.ports if self._output(p).exists()
            )
            if now != size:
                size, since = now, time.monotonic()
            time.sleep(0.02)

    def _output(self, port: int) -> Path:
        return self.folder / f"port{port}_out.pcap"

    # ---- control ----
    def command(self, text: str) -> str:
        """One line to simple_switch_CLI; its answer."""
        if self.cli is None:
            self.cli = subprocess.Popen(
                ["simple_switch_CLI", "--thrift-port", str(self.thrift_port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            self._answer()
        self.wait()
        self.cli.stdin.write(text.encode() + b"\n")
        self.cli.stdin.flush()
        answer = self._answer()
        if re.search(r"\b(Error|Invalid|Unknown|Wrong)\b", answer):
            raise StfError(f"simple_switch_CLI: {text}: {answer.strip()}")
        return answer

    def _answer(self) -> str:
        text = b""
        while not text.endswith(PROMPT):
            got = self.cli.stdout.read1(65536)
            if not got:
                raise StfError(f"simple_switch_CLI ended: {text.decode(errors='replace')}")
            text += got
        return text[: -len(PROMPT)].decode(errors="replace")

    def add(
        self, table: str, keys: list[Match], action: str, args: list[int], priority: int
    ) -> int:
        line = f"table_add {table} {action} {' '.join(map(_key, keys))} => "
        line += " ".join(map(hex, args))
        if any(k.kind in ("ternary", "range", "optional") for k in keys):
            line += f" {10000 - priority}"  # BMv2: the smaller number wins
        found = re.search(r"with handle (\d+)", self.command(line))
        if not found:
            raise StfError(f"simple_switch_CLI did not take: {line}")
        return int(found[1])

    def set_default(self, table: str, action: str, args: list[int]) -> None:
        self.command(f"table_set_default {table} {action} {' '.join(map(hex, args))}")

    def remove(self, table: str, handle: int) -> None:
        self.command(f"table_delete {table} {handle}")

    def direct(self, verb: str, name: str, numbers: tuple[int, ...]) -> str:
        return self.command(" ".join([verb, name, *map(str, numbers)])).strip()

    def set_meter(self, name: str, index: int, rates: tuple[tuple[float, int], ...]) -> None:
        pairs = " ".join(f"{rate:.12f}:{burst}" for rate, burst in rates)
        self.command(f"meter_set_rates {name} {index} {pairs}")

    def counter(self, name: str, index: int) -> tuple[int, int]:
        answer = self.command(f"counter_read {name} {index}")
        packets = re.search(r"(\d+) packets|packets=(\d+)", answer)
        size = re.search(r"(\d+) bytes|bytes=(\d+)", answer)
        if not packets or not size:
            raise StfError(f"simple_switch_CLI: counter_read {name} {index}: {answer.strip()}")
        return int(packets[1] or packets[2]), int(size[1] or size[2])

    def register(self, name: str, index: int) -> int:
        answer = self.command(f"register_read {name} {index}")
        found = re.search(r"=\s*(\d+)", answer)
        if not found:
            raise StfError(f"simple_switch_CLI: register_read {name} {index}: {answer.strip()}")
        return int(found[1])


def _key(match: Match) -> str:
    if match.kind == "lpm":
        return f"{match.value:#x}/{match.operand}"
    if match.kind in ("ternary", "optional"):
        return f"{match.value:#x}&&&{match.operand:#x}"
    if match.kind == "range":
        return f"{match.value:#x}->{match.operand:#x}"
    return f"{match.value:#x}"


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _read_pcap(path: Path) -> list[bytes]:
    """The whole packets of a capture that may still be growing."""
    data, at, frames = path.read_bytes() if path.exists() else b"", 24, []
    while at + 16 <= len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        if at + 16 + length > len(data):
            break
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames
