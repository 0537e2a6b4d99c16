"""Probes what this machine offers before a run is started."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agglab.testbed.base import kernel, signals
from agglab.testbed.base.command_lines import module_remedy, program_remedy
from agglab.testbed.base.errors import C_COMPILER, MachineLacks
from agglab.testbed.real import impaired
from agglab.testbed.real.impaired_code import EBPF_KINDS
from agglab.testbed.real.links import DELAYS, delays
from agglab.testbed.schema.faults import Action, Fault, Impair, LinkDown, RateChange
from agglab.topologies import (
    Direction,
    Drop,
    Duplicate,
    Impairment,
    Topology,
)

PROGRAMS = {
    "ip": "apt-get install iproute2",
    "tc": "apt-get install iproute2",
    "mnexec": "apt-get install mininet --no-install-recommends",
    "ifconfig": "apt-get install net-tools",  # Mininet looks for it
    C_COMPILER[0]: C_COMPILER[1],
}
PRIVILEGED = "use a machine that may create them, or a container started with --privileged"
TBF = "use a kernel with CONFIG_NET_SCH_TBF (modprobe sch_tbf), or leave `rate` out"
NETEM = (
    "use a kernel with CONFIG_NET_SCH_NETEM (modprobe sch_netem), leave delay, jitter and reorder "
    "out, or use `backend: virtual`"
)
BPF = (
    "run as root on Linux 5.12 (x86_64) or 5.18 (arm64) or newer with CONFIG_BPF_SYSCALL, or "
    "use `backend: virtual`; without eBPF the only impairment is `loss` for the whole run"
)
COPIES = (
    "use a kernel with CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF (modprobe sch_ingress cls_bpf)"
    ", or `backend: virtual`"
)
USER_NAMESPACES = (
    "run as root, or allow user namespaces (sysctl user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
)
VIRTUAL = "use `backend: virtual`, which supports it"
VETH = "use a kernel with CONFIG_VETH (modprobe veth)"
Lack = tuple[str, str]


def lacks(topology: Topology, faults: Sequence[Fault] = ()) -> list[MachineLacks]:
    """Returns everything that is missing for this topology and its faults, the most basic first;
    empty if they can run.

    The caller raises the first or prints them all; the exit code is 3. The probes take less than
    100 ms and leave nothing behind.
    """
    needs = needs_of(topology, faults)
    missing = list(_basics()) or _probed_in_child(needs)
    return [MachineLacks(what, remedy) for what, remedy in [*missing, *needs.impossible]]


@dataclass(frozen=True)
class Needs:
    """What a run will use of the kernel. ebpf: the uses of eBPF, except for constant loss, which a
    switch can also make. copies: those uses of eBPF that duplicate frames. impossible: what no
    kernel offers."""

    rates: bool
    netem: bool
    ebpf: tuple[str, ...]
    copies: tuple[str, ...]
    impossible: tuple[Lack, ...]


def needs_of(topology: Topology, faults: Sequence[Fault] = ()) -> Needs:
    """Returns the needs of every direction and every fault."""
    ways = [(name, way) for link in topology.links for name, _, _, way in link.directions()]
    actions = [fault.action for fault in faults]
    rated = any(way.rate_bps is not None for _, way in ways)
    return Needs(
        rates=rated or any(isinstance(action, RateChange) for action in actions),
        netem=any(way.delay_us or delays(way) for _, way in ways)
        or any(
            isinstance(action, Impair) and isinstance(action.impairment, DELAYS)
            for action in actions
        ),
        ebpf=tuple(dict.fromkeys(use for use, _ in _ebpf_uses(ways, actions))),
        copies=tuple(use for use, kind in _ebpf_uses(ways, actions) if kind is Duplicate),
        impossible=(
            *(lack for name, way in ways for lack in _impossible(name, way.impairments)),
            *(
                lack
                for action in actions
                if isinstance(action, Impair)
                for lack in _impossible(", ".join(action.directions), [action.impairment])
            ),
        ),
    )


def _ebpf_uses(
    ways: Sequence[tuple[str, Direction]], actions: Sequence[Action]
) -> Iterator[tuple[str, type]]:
    """Yields each use of eBPF as text, with the kind of the impairment."""
    for name, way in ways:
        for each in way.impairments:
            if isinstance(each, EBPF_KINDS) and not isinstance(each, Drop):
                yield f"{each.kind} on {name}", type(each)
    for action in actions:
        if isinstance(action, LinkDown):
            yield f"link_down of {action.link}", LinkDown
        elif isinstance(action, Impair) and isinstance(action.impairment, EBPF_KINDS):
            use = f"{action.impairment.kind} for part of the run on {', '.join(action.directions)}"
            yield use, type(action.impairment)


def _impossible(where: str, impairments: Iterable[Impairment]) -> Iterator[Lack]:
    if any(isinstance(each, Duplicate) and each.delay_us for each in impairments):
        yield f"support for delaying copies of frames on a real link ({where})", VIRTUAL
    for each in impairments:
        if not isinstance(each, EBPF_KINDS + DELAYS):
            yield f"support for {each.kind} on a real link ({where})", VIRTUAL


def _basics() -> Iterator[Lack]:
    for program, remedy in PROGRAMS.items():
        if shutil.which(program) is None:
            yield f"the program {program}", program_remedy(remedy)
    for module in ("mininet", "grpc", "google.protobuf", "p4.v1"):
        if not _importable(module):
            yield f"the Python module {module}", module_remedy(module)


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # its parent package is missing


def _probed_in_child(needs: Needs) -> list[Lack]:
    """Returns what a forked child, which tries everything once, cannot do in new namespaces. When
    the child ends, nothing is left."""
    reader, writer = os.pipe()
    with signals.blocked():
        pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(list(_kernel_lacks(needs))).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    os.waitpid(pid, 0)
    return [(what, remedy) for what, remedy in json.loads(answer)]


def _kernel_lacks(needs: Needs) -> Iterator[Lack]:
    if os.geteuid() != 0:
        try:
            kernel.own_user_namespace()
        except OSError as refused:
            yield (
                f"root, or permission to create user namespaces ({refused.strerror})",
                USER_NAMESPACES,
            )
            return
    try:
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET)
        kernel.private_mounts()
    except OSError as refused:
        yield f"permission to create namespaces ({refused.strerror})", PRIVILEGED
        return
    if not _accepts("ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"):
        yield "veth interfaces", VETH
        return
    yield from _impairment_lacks(needs)
    try:
        # Last: once its first child has ended, a process that did this can start no other.
        kernel.unshare(kernel.CLONE_NEWPID)
    except OSError as refused:
        yield f"pid namespaces ({refused.strerror})", PRIVILEGED


def _impairment_lacks(needs: Needs) -> Iterator[Lack]:
    shape = ("tc", "qdisc", "replace", "dev", "probe0", "root")
    bucket = ("tbf", "rate", "1mbit", "burst", "10000", "limit", "10000")
    if needs.rates and not _accepts(*shape, *bucket):
        yield "the tbf queueing discipline, which link rates need", TBF
    if needs.netem and not _accepts(*shape, "netem", "delay", "1ms"):
        yield "the netem queueing discipline, which link delays need", NETEM
    refused = impaired.refused() if needs.ebpf else None
    if refused is not None:
        yield f"eBPF ({refused}), which {', '.join(needs.ebpf)} need", BPF
    elif needs.copies and (refused := impaired.refused(Duplicate(0.5))) is not None:
        yield (
            f"packet duplication by eBPF ({refused}), which {', '.join(needs.copies)} need",
            COPIES,
        )


def _accepts(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0
