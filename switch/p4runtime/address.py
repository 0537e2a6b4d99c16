"""Tells from where clients can reach an address on which gRPC listens."""

from __future__ import annotations

import ipaddress
import socket

SCHEMES = ("dns:", "ipv4:", "ipv6:")
EVERYBODYS = ("unix-abstract:", "vsock:")
"""Kinds of address that are not private: abstract sockets have no permissions, and virtual machines
can reach vsock."""


def is_private(address: str) -> bool:
    """Whether only users of this machine can reach the address: a Unix socket with a path, or
    loopback.

    A name counts as the addresses to which it resolves. A name that does not resolve is not
    private.
    """
    if address.startswith("unix:"):
        return True
    if address.startswith(EVERYBODYS):
        return False
    for scheme in SCHEMES:
        if address.startswith(scheme):
            address = address.removeprefix(scheme).rpartition("/")[2]
            break
    return all(_is_loopback(_host(each)) for each in address.split(","))


def _host(address: str) -> str:
    """Returns the host of `host:port`, `[host]:port` or `host`."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", None)
    except (OSError, UnicodeError):
        return False
    return all(_is_loopback_number(str(entry[4][0])) for entry in found)


def _is_loopback_number(text: str) -> bool:
    number = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(number, ipaddress.IPv6Address) and number.ipv4_mapped:
        number = number.ipv4_mapped
    return number.is_loopback
