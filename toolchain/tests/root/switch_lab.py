"""Namespaces with veth pairs for the tests of the packet loop and the switch program.

The switch's ends s1, s2, s3 are in one namespace, the hosts' ends h1, h2, h3 each in its own. A
namespace lives as long as a `cat` that reads from this process, so nothing outlives it.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")
ETH_P_ALL = 3
SOL_PACKET, PACKET_IGNORE_OUTGOING, PACKET_AUXDATA = 263, 23, 8
CLONE_NEWNET = 0x40000000
FIXTURES = Path(__file__).resolve().parents[1] / "switch"


class Namespace:
    """A network namespace without interfaces but loopback."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        self._holder.stdout.readline()
        self.pid = self._holder.pid
        self.sh("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")

    def command(self, *words: str) -> list[str]:
        """A command line that runs in here."""
        return ["nsenter", "--target", str(self.pid), "--net", *words]

    def sh(self, line: str) -> str:
        """Run a command in here and return what it printed."""
        command = self.command(*line.split())
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def call(self, function: Callable[[], Result]) -> Result:
        """Call a function whose sockets are opened in here (a thread that changes namespace)."""
        results: list[Any] = []

        def run() -> None:
            with open(f"/proc/{self.pid}/ns/net") as namespace:
                libc = ctypes.CDLL(None, use_errno=True)
                assert libc.setns(namespace.fileno(), CLONE_NEWNET) == 0, os.strerror(
                    ctypes.get_errno()
                )
            try:
                results.append(function())
            except BaseException as error:
                results.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(results[0], BaseException):
            raise results[0]
        result: Result = results[0]
        return result

    def packet_socket(self, interface: str) -> socket.socket:
        """A raw socket on an interface that gives VLAN tags in its ancillary data."""

        def make() -> socket.socket:
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            raw.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            raw.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
            raw.bind((interface, ETH_P_ALL))
            raw.settimeout(10)
            return raw

        return self.call(make)

    def close(self) -> None:
        """The kernel removes the namespace and what is in it."""
        assert self._holder.stdin is not None and self._holder.stdout is not None
        self._holder.stdin.close()
        self._holder.wait()
        self._holder.stdout.close()


def receive(raw: socket.socket) -> bytes:
    """The next frame with its VLAN tag put back."""
    frame, ancillary, _, _ = raw.recvmsg(70000, 256)
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, tci = (
                int.from_bytes(data[0:4], "little"),
                int.from_bytes(data[16:18], "little"),
            )
            tpid = int.from_bytes(data[18:20], "little")
            if status & 0x10:  # TP_STATUS_VLAN_VALID
                tag = tpid.to_bytes(2, "big") + tci.to_bytes(2, "big")
                frame = frame[:12] + tag + frame[12:]
    return frame


class Lab:
    """A switch's namespace and three hosts', connected by veth pairs with MTU 9000."""

    def __init__(self) -> None:
        self.switch = Namespace()
        self.hosts = [Namespace() for _ in range(3)]
        for number, host in enumerate(self.hosts, 1):
            self.switch.sh(
                f"ip link add s{number} mtu 9000 type veth"
                f" peer name h{number} mtu 9000 netns {host.pid}"
            )
            for namespace, end in ((self.switch, f"s{number}"), (host, f"h{number}")):
                namespace.sh(f"ip link set {end} up")

    def packet_sockets(self) -> list[socket.socket]:
        """One raw socket a host."""
        return [host.packet_socket(f"h{number}") for number, host in enumerate(self.hosts, 1)]

    def close(self) -> None:
        """Remove everything."""
        for namespace in (self.switch, *self.hosts):
            namespace.close()


class Stub:
    """stub_pipeline.c, with its lock in the test's hand."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.library.pl_new.restype = ctypes.c_void_p
        self.library.pl_new.argtypes = [ctypes.c_uint64]
        for name in ("pl_lock", "pl_unlock"):
            getattr(self.library, name).argtypes = [ctypes.c_void_p]
        self.handle: int = self.library.pl_new(0)

    def function_address(self, name: str) -> int:
        address = ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value
        assert address is not None
        return address

    def drops(self) -> dict[str, int]:
        return {}
