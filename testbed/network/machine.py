"""What this machine offers, probed rather than guessed, before anything is started."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import traceback
from collections.abc import Iterator

from testbed.errors import MachineLacks
from testbed.network import kernel
from testbed.network.loss import LossProgram
from topologies import Direction, Drop, Topology

SETUP = "run `make setup`"
PROGRAMS = {
    "ip": "apt-get install iproute2",
    "tc": "apt-get install iproute2",
    "mnexec": "apt-get install mininet --no-install-recommends",
    "ifconfig": "apt-get install net-tools",  # Mininet looks for it
    "cc": "apt-get install gcc libc6-dev",
}
PRIVILEGED = "use a machine, or a container started with --privileged, that may make them"
TBF = "use a kernel with CONFIG_NET_SCH_TBF (modprobe sch_tbf), or leave `rate` out"
NETEM = "use a kernel with CONFIG_NET_SCH_NETEM (modprobe sch_netem), or leave `delay` out"
BPF = "use Linux 5.12 or newer with CONFIG_BPF_SYSCALL on x86_64 or arm64, or leave `loss` out"
VETH = "use a kernel with CONFIG_VETH (modprobe veth)"
Lack = tuple[str, str]


def lacks(topology: Topology) -> list[MachineLacks]:
    """Everything missing for this topology, most basic first; empty when it can run.

    Raise the first or print them all; exit code 3. Takes less than 100 ms and leaves nothing.
    """
    missing = list(_basics()) or _probed_in_child(topology)
    return [MachineLacks(what, remedy) for what, remedy in missing]


def _basics() -> Iterator[Lack]:
    if os.geteuid() != 0:
        yield "root", "run it as root, or with sudo"
    for program, remedy in PROGRAMS.items():
        if shutil.which(program) is None:
            yield f"the program {program}", f"{SETUP}, or {remedy}"
    for module in ("mininet", "grpc", "p4.v1"):
        if not _importable(module):
            yield f"the Python module {module}", SETUP


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # its parent package is missing


def _probed_in_child(topology: Topology) -> list[Lack]:
    """Try everything once in namespaces of a forked child, which take all of it with them."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(list(_kernel_lacks(topology))).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    os.waitpid(pid, 0)
    return [(what, remedy) for what, remedy in json.loads(answer)]


def _kernel_lacks(topology: Topology) -> Iterator[Lack]:
    try:
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET)
        kernel.private_mounts()
    except OSError as refused:
        yield f"the right to make namespaces ({refused.strerror})", PRIVILEGED
        return
    if not _accepts("ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"):
        yield "veth interfaces", VETH
        return
    yield from _impairment_lacks([way[3] for link in topology.links for way in link.directions()])
    try:
        # Last: once its first child has ended, a process that did this can start no other.
        kernel.unshare(kernel.CLONE_NEWPID)
    except OSError as refused:
        yield f"pid namespaces ({refused.strerror})", PRIVILEGED


def _impairment_lacks(directions: list[Direction]) -> Iterator[Lack]:
    shape = ("tc", "qdisc", "replace", "dev", "probe0", "root")
    if any(direction.rate_bps is not None for direction in directions) and not _accepts(
        *shape, "tbf", "rate", "1mbit", "burst", "10000", "limit", "10000"
    ):
        yield "the tbf queueing discipline, which link rates need", TBF
    if any(direction.delay_us for direction in directions) and not _accepts(
        *shape, "netem", "delay", "1ms"
    ):
        yield "the netem queueing discipline, which link delays need", NETEM
    if any(direction.impairments for direction in directions):
        try:
            LossProgram("probe1", Drop(0.5), 0, "probe", "probe").close()
        except OSError as refused:
            yield f"eBPF, which losses need ({refused})", BPF


def _accepts(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0
