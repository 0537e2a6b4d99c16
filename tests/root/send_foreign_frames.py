"""Sends what no worker and no switch would, on one interface; run inside a namespace.

    python send_foreign_frames.py INTERFACE HOST contributions|forged|results COUNT

contributions: from host number HOST to the switch; forged: the same host pretends to be the
aggregator that answers host 1; results: to host number HOST, from the switch's side of its link.
"""

from __future__ import annotations

import itertools
import random
import socket
import struct
import sys
import time
from dataclasses import dataclass

AGGREGATOR = (bytes.fromhex("02000000fffe"), socket.inet_aton("10.0.255.254"), 48864)


def host(number: int) -> tuple[bytes, bytes, int]:
    """(MAC, IP, UDP port of job 1)."""
    return bytes.fromhex(f"0200000000{number:02x}"), socket.inet_aton(f"10.0.0.{number}"), 48866


def checksum(header: bytes) -> int:
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def chunk(
    version: int = 1, kind: int = 1, job: int = 1, slot: int = 0, tag: int = 1, lanes: int = 64
) -> bytes:
    values = b"".join(struct.pack("!i", random.randrange(-(2**31), 2**31)) for _ in range(lanes))
    return struct.pack("!BBHHBBI", version, kind, job, slot, 200, 0, tag) + values


@dataclass(frozen=True)
class Direction:
    """From one end to another."""

    source: tuple[bytes, bytes, int]
    to: tuple[bytes, bytes, int]

    def frame(
        self, payload: bytes, port: int | None = None, grow: int = 0, kind: int = 0x0800
    ) -> bytes:
        """grow: what the IPv4 length says too much."""
        ports = (self.source[2], self.to[2] if port is None else port)
        udp = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload
        fields = (0x45, 0, 20 + len(udp) + grow, 0, 0, 64, 17, 0, self.source[1], self.to[1])
        ip = bytearray(struct.pack("!BBHHHBBH4s4s", *fields))
        ip[10:12] = struct.pack("!H", checksum(bytes(ip)))
        return self.to[0] + self.source[0] + struct.pack("!H", kind) + bytes(ip) + udp


def contributions(number: int) -> list[bytes]:
    """Fourteen that a switch with 64 lanes and 16 slots refuses, and six that are none."""
    frame = Direction(host(number), AGGREGATOR).frame
    refused = [
        frame(chunk(version=2)),
        frame(chunk(kind=0x7F)),
        frame(chunk(kind=0x81)),
        frame(chunk(job=2)),
        frame(chunk(job=0xFFFF)),
        frame(chunk(slot=16)),
        frame(chunk(slot=0xFFFF)),
        frame(chunk(lanes=63)),
        frame(chunk(lanes=0)),
        frame(chunk(lanes=65)),
        frame(chunk(), grow=4),
        frame(chunk(kind=2)),
        frame(chunk())[:200],
        frame(chunk())[:50],
    ]
    others = [
        frame(chunk(), port=9),
        frame(b""),
        frame(chunk())[:20],
        frame(chunk(), kind=0x86DD),
        host(number)[0] * 2 + b"\x88\xb5",
        Direction(host(number), host(1)).frame(chunk(kind=0x81)),
    ]
    return refused + others


def forged(number: int) -> list[bytes]:
    """Results for host 1 in every slot and for many tags: one of them would fit."""
    mac = host(number)[0]
    frame = Direction((mac, *AGGREGATOR[1:]), host(1)).frame
    return [frame(chunk(kind=0x81, slot=s, tag=t)) for t in range(1, 400) for s in range(16)]


def results(number: int) -> list[bytes]:
    """Fourteen that no worker takes for a result of its own job, to its very socket."""
    frame = Direction(AGGREGATOR, host(number)).frame
    return [
        frame(chunk(version=2, kind=0x81)),
        frame(chunk(kind=1)),
        frame(chunk(kind=0xFF)),
        frame(chunk(kind=0x81, tag=10**6)),
        frame(chunk(kind=0x81, job=2)),
        frame(chunk(kind=0x81, slot=16)),
        frame(chunk(kind=0x81, slot=0xFFFF)),
        frame(chunk(kind=0x81, lanes=63)),
        frame(chunk(kind=0x81, lanes=65)),
        frame(chunk(kind=0x81, lanes=300)),
        frame(chunk(kind=0x82)),
        frame(b""),
        frame(b"x"),
        frame(chunk(kind=0x81)[:11]),
    ]


def main(interface: str, number: str, what: str, count: str) -> None:
    random.seed(4)
    frames = {"contributions": contributions, "forged": forged, "results": results}[what]
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((interface, 0))
    for frame in itertools.islice(itertools.cycle(frames(int(number))), int(count)):
        link.send(frame)
        time.sleep(0.0003)


if __name__ == "__main__":
    main(*sys.argv[1:])
