"""Changes settings of interfaces that `ip` cannot change: readiness, offloads, IPv6, and the
processor that handles received frames. It works on the namespace of the calling thread."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from agglab.testbed.base import kernel

SIOCGIFFLAGS = 0x8913
IFF_RUNNING = 0x40
SIOCETHTOOL = 0x8946
RUNNING_TIMEOUT_S = 30.0
POLL_S = 0.0005
# Receive and send checksums, TSO, GSO, GRO (ETHTOOL_S* of linux/ethtool.h): a frame on a
# link is a frame as on a wire, complete and no longer than the MTU.
OFFLOAD_COMMANDS = (0x15, 0x17, 0x1F, 0x24, 0x2C)
# Where a link carries several datagrams as one buffer: TSO and GRO alone.
OFFLOAD_COMMANDS_BUFFERED = (0x1F, 0x2C)

SYSCTLS = {
    # No router solicitations or neighbour discovery: only the run's traffic is on the links.
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
    # A host answers for the address of the asked interface only.
    "ipv4/conf/all/arp_ignore": "1",
}


def wait_until_running(interfaces: Iterable[str]) -> None:
    """Waits until each interface has its queue. interfaces: for each cable, the end that was set up
    first.

    The second end of a cable gets its queue when it is set up, but the first end gets it later from
    a work queue (linkwatch). Until then, frames sent there are lost without being counted.
    IFF_RUNNING is set just before the queue, under a lock that every change of an interface takes.
    Therefore the caller must change each interface once more after this call: the queue is there
    when the change is done.
    """
    deadline = time.monotonic() + RUNNING_TIMEOUT_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for interface in interfaces:
            while not _flags(any_socket, interface) & IFF_RUNNING:
                assert time.monotonic() < deadline, f"interface {interface} did not come up"
                time.sleep(POLL_S)


def _flags(any_socket: socket.socket, interface: str) -> int:
    answer = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sH22x", interface.encode(), 0))
    return int(struct.unpack_from("H", answer, 16)[0])


def set_sysctls() -> None:
    """Sets the kernel settings in SYSCTLS. A setting that this kernel does not have is skipped,
    because it is not needed there."""
    for name, value in SYSCTLS.items():
        path = Path("/proc/sys/net") / name
        if path.exists():
            path.write_text(value)


def offloads_off(interfaces: Iterable[str], commands: Sequence[int] = OFFLOAD_COMMANDS) -> None:
    """Switches off offloads of each interface. commands: the requests to the kernel that do so.
    Raises OSError if the kernel refuses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for interface in interfaces:
            for command in commands:
                value = ctypes.create_string_buffer(struct.pack("<II", command, 0), 8)
                request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(value))
                fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def handled_by_one_processor(interfaces: Iterable[str], scratch: Path) -> None:
    """Makes one processor handle everything that each interface receives (receive packet steering).

    Without this, any processor may empty a queue of waiting frames into its own backlog. Frames in
    a backlog that is delayed are then overtaken by frames that another processor took later.
    Steering needs root outside of user namespaces, and CONFIG_RPS; without them nothing is changed.
    """
    interfaces = sorted(interfaces)
    if not interfaces:
        return
    processors = sorted(os.sched_getaffinity(0))
    sys_folder = scratch / "sys"  # sysfs shows the network namespace it was mounted in
    sys_folder.mkdir(exist_ok=True)
    with contextlib.suppress(OSError):
        kernel.mount("sysfs", str(sys_folder), "sysfs", kernel.MS_NOSUID)
        try:
            for number, interface in enumerate(interfaces):
                steering = sys_folder / "class/net" / interface / "queues/rx-0/rps_cpus"
                steering.write_text(processor_mask(processors[number % len(processors)]))
        finally:
            kernel.unmount(str(sys_folder))


def processor_mask(processor: int) -> str:
    """Returns the mask of one processor in the form that the kernel reads: hexadecimal, with a
    comma every 32 bits."""
    return f"{1 << processor % 32:x}" + ",00000000" * (processor // 32)
