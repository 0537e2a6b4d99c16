"""Tells from where clients can reach an address on which gRPC listens."""

from __future__ import annotations

import ipaddress
import socket

SCHEMES = ("dns:", "ipv4:", "ipv6:")
EVERYBODYS = ("unix-abstract:", "vsock:")
"""Kinds of address that are not private: abstract sockets have no permissions, and virtual machines
can reach vsock."""


MAX_TCP_PORT = 65535


def check(address: str) -> None:
    """Raises ValueError, with one line, for an address at which gRPC would listen somewhere else
    than it says: without a port, or with one that is none. The host is not looked up."""
    if address.startswith(("unix:", *EVERYBODYS)):
        return
    for each in _without_scheme(address).split(","):
        port = _split(each)[1]
        number = int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else None
        if number is None or number > MAX_TCP_PORT:
            problem = f"{port!r} is not a port from 0 to {MAX_TCP_PORT}" if port else "lacks a port"
            raise ValueError(f"{address!r}: {problem}; write HOST:PORT, [HOST]:PORT or unix:/PATH")


def with_port(address: str, port: int) -> str:
    """Returns the address with the port that the system chose, if the address has port 0."""
    host, colon, given = address.rpartition(":")
    is_open = not address.startswith(("unix:", *EVERYBODYS)) and given.strip("0") == "" != given
    return f"{host}{colon}{port}" if is_open else address


def _split(address: str) -> tuple[str, str]:
    """Returns host and port, which is empty where there is none."""
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        return host, rest.removeprefix(":")
    if address.count(":") == 1:
        host, _, port = address.partition(":")
        return host, port
    return address, ""


def _without_scheme(address: str) -> str:
    for scheme in SCHEMES:
        if address.startswith(scheme):
            return address.removeprefix(scheme).rpartition("/")[2]
    return address


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
    return all(_is_loopback(_split(each)[0]) for each in _without_scheme(address).split(","))


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
