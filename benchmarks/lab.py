"""A test bench for switches under load: four workers on veth pairs, and functions that run a switch
between them and measure it.

Every packet that a worker sends is a new contribution. The switch answers the last contribution of
each chunk to all four workers, so as many frames leave it as enter it. The functions that run a
switch return packets/s, and ns of processor time for each packet.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agglab.testbed import systems
from agglab.testbed.real.p4runtime import P4RuntimeClient
from agglab.testbed.real.targets import Bmv2Target, SwitchSetting
from agglab.testbed.run.programs.prepare import all_entries
from agglab.testbed.run.programs.program import Program
from agglab.testbed.scenario import resolve
from agglab.testbed.schema.network_sections import Switch, Topology
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.plan.changes import NO_ENTRIES
from agglab.verification import programs
from p4native.common.c_build import NATIVE

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOURCES = HERE / "switch"
WORKERS = 4
SLOTS = 128
MTU = 9100
RING_FRAMES = 2048
COPY_BATCH = 64
DRAIN_PACKETS = WORKERS * 512
FLOW_WINDOW = 64
SECONDS = 0.7
START_S = 30.0
ATTEMPTS = 4
SEGMENTS, PAYLOAD_MAX = 64, 65507
"""The limits of a buffer: the number of packets, and the bytes of their UDP payloads."""
Sample = tuple[float, float]


@dataclass
class Samples:
    """The results of all repetitions with one forwarder: packets/s, and ns of processor time for
    each packet."""

    rates: list[float] = field(default_factory=list)
    cpu_ns: list[float] = field(default_factory=list)

    def add(self, rate: float, cpu_ns: float) -> None:
        """Adds the results of one repetition. rate: packets/s. cpu_ns: ns of processor time for
        each packet."""
        self.rates.append(rate)
        self.cpu_ns.append(cpu_ns)


class Stalled(RuntimeError):
    """Raised if packets were lost, or if a process waited for a processor for longer than 0.2 s.
    The measurement is then not valid."""


def patiently(measure: Callable[[], Sample]) -> Sample:
    """Calls `measure` and returns its result. Calls it again, at most three times, if it raises
    Stalled, because other processes may have used the processors."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(Stalled):
            return measure()
    return measure()


def need_root() -> None:
    """Raises RuntimeError unless the user is root, because only root can make the namespaces of
    Lab."""
    if os.geteuid() != 0:
        raise RuntimeError("needs root (network namespaces): run as root, or with sudo")


def aggregation(compiler: str, lanes: int) -> Program:
    """Returns the default system's switch program, compiled by the given compiler. The program
    sums, and the load generator uses its protocol."""
    return programs.compiled(systems.default(), lanes, SLOTS, compiler)


def build_tools(folder: Path) -> dict[str, Path]:
    """Compiles the load generator and the copy forwarder into a folder. Returns their paths by
    name."""
    tools = {}
    for name in ("load_generator", "copy_forwarder"):
        tools[name] = folder / name
        flags = f"-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -O3 {NATIVE}"
        command = ["cc", *flags.split(), "-o", str(tools[name]), str(SOURCES / f"{name}.c")]
        if shutil.which("cc") is None:
            raise RuntimeError("no C compiler: install gcc (apt-get install gcc libc6-dev)")
        subprocess.run(command, check=True)
    return tools


class Lab:
    """Two network namespaces, one of the switch and one of the workers, which are joined by one
    veth pair for each worker.

    Two processes keep the namespaces alive; they read from a pipe of this process. So the
    namespaces vanish when this process has ended.
    """

    def __init__(self, folder: Path, tools: dict[str, Path]) -> None:
        self.folder = folder
        self.tools = tools
        self._holders = [_holder() for _ in range(2)]
        self.switch_pid, self.workers_pid = (holder.pid for holder in self._holders)
        for number in range(1, WORKERS + 1):
            self._sh(
                self.switch_pid,
                f"ip link add s{number} mtu {MTU} type veth"
                f" peer name h{number} mtu {MTU} netns {self.workers_pid}",
            )
            self._sh(self.switch_pid, f"ip link set s{number} up")
            self._sh(self.workers_pid, f"ip link set h{number} up")
        self._sh(self.switch_pid, "ip link set lo up")

    def _sh(self, pid: int, line: str) -> None:
        subprocess.run(_inside(pid, line.split()), check=True)

    def offer(self, lanes: int, pid: int, segments: int = 1) -> dict[str, Any]:
        """Runs the load generator and returns its results. pid: the process id of the forwarder,
        whose rings the load generator fills before it measures; 0 to skip this. segments: the
        number of packets that are sent as one buffer. Raises Stalled."""
        window = DRAIN_PACKETS if pid else FLOW_WINDOW
        numbers = [str(n) for n in (lanes, SLOTS, window, SECONDS, pid, segments)]
        interfaces = [f"h{number}" for number in range(1, WORKERS + 1)]
        command = [*_on_cpu(1), str(self.tools["load_generator"]), *numbers, *interfaces]
        text = subprocess.check_output(_inside(self.workers_pid, command))
        result: dict[str, Any] = json.loads(text)
        if result["stalls"]:
            raise Stalled(f"answers were missing ({result['stalls']} times): nothing to measure")
        return result

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        for holder in self._holders:
            holder.communicate()


def _holder() -> subprocess.Popen[bytes]:
    script = "sysctl -qw net.ipv6.conf.default.disable_ipv6=1; echo; exec cat"
    command = ["unshare", "--net", "sh", "-c", script]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    if not holder.stdout.readline():
        raise RuntimeError("cannot make a network namespace: run as root outside a container")
    return holder


def _inside(pid: int, command: list[str]) -> list[str]:
    return ["nsenter", "--target", str(pid), "--net", *command]


def _on_cpu(number: int) -> list[str]:
    return ["taskset", "-c", str(number)] if (os.cpu_count() or 1) > 1 else []


def _drain_rate(result: dict[str, Any]) -> float:
    """Returns a packet rate, computed from the first quartile of the drains' times. In slower
    drains, a process may have waited for a processor."""
    drains = sorted(result["drain_ns"])
    return float(result["drain_packets"] / drains[len(drains) // 4] * 1e9)


def copy_forwarder(lab: Lab, lanes: int, program: Program) -> Sample:
    """Measures the copy forwarder, which returns each frame. The parameter `program` is not
    used."""
    interfaces = [f"s{number}" for number in range(1, WORKERS + 1)]
    numbers = [str(RING_FRAMES), str(COPY_BATCH)]
    command = [*_on_cpu(0), str(lab.tools["copy_forwarder"]), *numbers, *interfaces]
    with running(lab, command, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        result = lab.offer(lanes, process.pid)
        process.terminate()
        counts = json.loads(process.stdout.read())
    return _drain_rate(result), counts["cpu_s"] * 1e9 / counts["packets"]


def _ports() -> list[str]:
    return [word for n in range(1, WORKERS + 1) for word in ("-i", f"{n}@s{n}")]


@contextlib.contextmanager
def native_process(lab: Lab, program: Program, *arguments: str) -> Iterator[Any]:
    """Starts Agglab's switch with its table entries and yields its process when it is ready for
    packets."""
    grpc = lab.folder / "grpc"
    ready, told = os.pipe()
    command = [*_on_cpu(0), sys.executable, "-m", "p4native.switch", *_ports(), str(program.json)]
    command += ["--p4info", str(program.p4info), "--ready-fd", str(told), *arguments]
    command += ["--", "--grpc-server-addr", f"unix:{grpc}"]
    with running(lab, command, pass_fds=[told], cwd=ROOT) as process:
        os.close(told)
        with open(ready, "rb") as pipe:
            if not pipe.read(1):
                raise RuntimeError("the native switch did not start")
        _fill(f"unix:{grpc}", program)
        yield process


def buffered_switch(lab: Lab, lanes: int, program: Program) -> Sample:
    """Measures Agglab's switch, to which packets are sent in buffers. Each buffer has as many
    packets as fit."""
    return native_switch(lab, lanes, program, min(SEGMENTS, PAYLOAD_MAX // (4 * lanes + 12)))


def native_switch(lab: Lab, lanes: int, program: Program, segments: int = 1) -> Sample:
    """Measures Agglab's switch. Its rings are filled with packets before it begins to process
    them."""
    stats = lab.folder / "stats"
    options = ("--ring-frames", str(RING_FRAMES), "--stats-socket", str(stats))
    with native_process(lab, program, *options) as process:
        before = _read_stats(stats)
        result = lab.offer(lanes, process.pid, segments)
        after = _read_stats(stats)
    packets = _received(after) - _received(before)
    return _drain_rate(result), (after["cpu_ns"] - before["cpu_ns"]) / packets


def _received(stats: dict[str, Any]) -> int:
    return sum(port["rx_packets"] for port in stats["ports"].values())


def _read_stats(path: Path) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        with connection.makefile("rb") as stream:
            stats: dict[str, Any] = json.loads(stream.read())
    return stats


def _fill(address: str, program: Program) -> None:
    client = P4RuntimeClient(address, 0, program.p4info)
    client.become_primary()
    client.insert(entries())
    client.close()


def entries() -> Entries:
    """Returns the table entries of the switch in this test bench."""
    shape, sizes = Topology("rack", workers=WORKERS), Switch(lanes=1, slots=SLOTS)
    scenario = Scenario(topology=shape, switch=sizes, workload=Workload(window=SLOTS))
    return all_entries(resolve(scenario))["s1"]


def bmv2(lab: Lab, lanes: int, program: Program, filled: bool = True) -> Sample:
    """Measures BMv2, which is started and gets its table entries as in a run. Its receive buffer
    cannot be filled before it begins, and need not be, because BMv2 is slower than the load.
    filled: whether the table entries are added; False for a program without tables."""
    target = Bmv2Target(program.json, program.p4info)
    ports = {number: f"s{number}" for number in range(1, WORKERS + 1)}
    setting = SwitchSetting("s1", 0, ports, lab.folder, None, lab.switch_pid)
    command = target.command(setting)
    with running(lab, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        with contextlib.closing(target.control(setting)) as control:
            if not control.answers(START_S):
                raise RuntimeError(f"{command[0]} did not start")
            control.begin()
            if filled:
                control.change(NO_ENTRIES, entries())
        before = cpu_s(process.pid)
        result = lab.offer(lanes, 0)
        used_s = cpu_s(process.pid) - before
    return result["answered"] / result["seconds"], used_s * 1e9 / result["answered"]


def cpu_s(pid: int) -> float:
    """Returns the processor time, in seconds, that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(lab: Lab, command: list[str], **options: Any) -> Iterator[Any]:
    """Starts a process in the switch's namespace, yields it, and ends it afterwards."""
    process = subprocess.Popen(_inside(lab.switch_pid, command), **options)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
