"""What a worker's socket hears of frames, in a kernel; run inside a network namespace of its own.

Reads frames as hexadecimal lines, an empty line for each frame that ends a case. Writes one JSON
line a case: the datagrams that were heard, as hexadecimal, and how many errors. A marker that
follows each case says when all of it has been heard.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys

HOST, AGGREGATOR = ("10.0.0.1", 48866), ("10.0.255.254", 48864)
MARKER = b"marker"
# Linux: IP_MTU_DISCOVER as hosts.driver sets it.
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
SO_MEMINFO = 55
SETUP = """
ip link add veth0 address 02:00:00:00:00:01 type veth peer name veth1 address 02:00:00:00:00:02
sysctl -qw net.ipv6.conf.all.disable_ipv6=1
ip addr add 10.0.0.1/16 dev veth0
ip link set veth0 mtu 9000 up
ip link set veth1 mtu 9000 up
ip link set lo up
"""


def main() -> None:
    for line in SETUP.strip().splitlines():
        subprocess.run(line.split(), check=True)
    hears = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    hears.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    hears.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
    hears.bind(HOST)
    hears.connect(AGGREGATOR)
    hears.settimeout(5)
    sends = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sends.bind(("veth1", 0))
    marker = bytes.fromhex(sys.argv[1])
    for line in sys.stdin:
        if line.strip():
            sends.send(bytes.fromhex(line))
        else:
            sends.send(marker)
            print(json.dumps(heard(hears)), flush=True)


def dropped(hears: socket.socket) -> int:
    """How many datagrams the kernel has dropped at the socket so far."""
    memory = hears.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 36)
    return struct.unpack("=9I", memory)[8]


def heard(hears: socket.socket) -> tuple[list[str], int, int]:
    datagrams, errors, before = [], 0, dropped(hears)
    while True:
        try:
            datagram = hears.recv(65536)
        except TimeoutError:
            raise
        except OSError:
            errors += 1
            continue
        if datagram == MARKER:
            return datagrams, errors, dropped(hears) - before
        datagrams.append(datagram.hex())


main()
