"""What `ip` has no word for: offloads and IPv6 off, in the calling thread's network namespace."""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

SIOCETHTOOL = 0x8946
# Receive and send checksums, TSO, GSO, GRO (ETHTOOL_S* of linux/ethtool.h): a frame on a
# link is a frame as on a wire, complete and no longer than the MTU.
OFFLOAD_COMMANDS = (0x15, 0x17, 0x1F, 0x24, 0x2C)

SYSCTLS = {
    # No router solicitations or neighbour discovery: only the run's traffic is on the links.
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
    # A host answers for the address of the asked interface only.
    "ipv4/conf/all/arp_ignore": "1",
}


def set_sysctls() -> None:
    """Set SYSCTLS; those this kernel does not have are not needed either."""
    for name, value in SYSCTLS.items():
        path = Path("/proc/sys/net") / name
        if path.exists():
            path.write_text(value)


def offloads_off(interfaces: Iterable[str]) -> None:
    """Switch the offloads of each interface off; OSError if the kernel refuses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for interface in interfaces:
            for command in OFFLOAD_COMMANDS:
                value = ctypes.create_string_buffer(struct.pack("<II", command, 0), 8)
                request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(value))
                fcntl.ioctl(any_socket, SIOCETHTOOL, request)
