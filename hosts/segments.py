"""Finds how many datagrams the kernel may take as one buffer on the interface that has a given
address.

If an interface has no generic segmentation offload, its link carries frames that must stay separate
(docs/network.md).
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

MOST = 64
"""The largest number of datagrams in a buffer. Before Linux 6.9, the kernel refuses more
(UDP_MAX_SEGMENTS)."""
BYTES_MAX = 65507
"""The largest number of payload bytes in a buffer, as in an IPv4 datagram."""

# linux/sockios.h, linux/ethtool.h
SIOCGIFADDR, SIOCETHTOOL, ETHTOOL_GGSO = 0x8915, 0x8946, 0x23


def most(address: str) -> int:
    """Returns the largest number of datagrams in a buffer: MOST, or 1 if no interface has the
    address or the interface has no segmentation offload."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, interface in socket.if_nameindex():
            if _address(any_socket, interface) == address:
                return MOST if _segments(any_socket, interface) else 1
    return 1


def _address(any_socket: socket.socket, interface: str) -> str | None:
    try:
        answer = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("16s24x", interface.encode()))
    except OSError:  # it has none
        return None
    return socket.inet_ntoa(answer[20:24])


def _segments(any_socket: socket.socket, interface: str) -> bool:
    value = ctypes.create_string_buffer(struct.pack("<II", ETHTOOL_GGSO, 0), 8)
    request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(value))
    try:
        fcntl.ioctl(any_socket, SIOCETHTOOL, request)
    except OSError:  # it knows of no offloads
        return False
    return bool(struct.unpack("<II", value.raw)[1])
