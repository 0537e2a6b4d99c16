"""Drops of another process's packet sockets against what that process itself can still read."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agglab.testbed.real.packet_sockets import take_drops

pytestmark = pytest.mark.root
SENT = 500
# Linux counts a loopback frame going out as well, unless told not to (PACKET_IGNORE_OUTGOING, 23).
LISTENER = f"""
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
tap.setsockopt(263, 23, 1)
tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
other.bind(("127.0.0.1", 9))
tap.bind(("lo", 0x0800))
for _ in range({SENT}):
    other.sendto(bytes(400), ("127.0.0.1", 9))
print("sent", flush=True)
sys.stdin.readline()
tap.setblocking(False)
kept = 0
try:
    while True:
        tap.recv(2000)
        kept += 1
except BlockingIOError:
    print(kept, flush=True)
sys.stdin.readline()
"""


def test_what_the_kernel_dropped_is_what_cannot_be_read() -> None:
    command = ["unshare", "--net", sys.executable, "-c", LISTENER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "sent\n"
        drops = take_drops(process.pid)
        again = take_drops(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        kept = int(process.stdout.readline())
        process.stdin.write("\n")
    assert 0 < kept < SENT
    assert (drops, again) == (SENT - kept, 0)
    assert take_drops(process.pid) == 0
