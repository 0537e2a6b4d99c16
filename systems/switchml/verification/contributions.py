"""A packet test with which fuzzing starts. In it, two workers are members of job 1 and send
contributions."""

from __future__ import annotations

import struct

from agglab.hosts.wire import AGGREGATOR_PORT, Chunk, Kind, datagram_bytes

AGGREGATOR, WORKER_IP, WORKER_MAC = 0x0A00FFFE, 0x0A000001, 0x020000000001


def script(lanes: int) -> str:
    """Returns the text of the test, for a program with this many lanes and at least 8 slots."""
    lines = []
    for rank in range(2):
        given = "job_index:0, all_workers:3, first_slot:0, slots:8, group:1, parent:511"
        key = f"standard_metadata.ingress_port:{rank + 1} hdr.aggregation.job:1"
        lines.append(f"add members {key} contribute(worker:{1 << rank}, {given})")
        key = f"standard_metadata.egress_port:{rank + 1} hdr.aggregation.job:1"
        given = f"mac:{WORKER_MAC}, address:{WORKER_IP}, udp_port:48866"
        lines.append(f"add results {key} to_worker({given})")
        for tag in range(1, 4):
            lines += [
                f"packet {rank + 1} {_contribution(lanes, slot, tag).hex()}" for slot in range(3)
            ]
    return "\n".join(lines)


def _contribution(lanes: int, slot: int, tag: int) -> bytes:
    size = 28 + datagram_bytes(lanes)
    ethernet = bytes.fromhex("02000000fffe020000000001") + b"\x08\x00"
    head = struct.pack(">BBHHHBBHII", 0x45, 0, size, 0, 0, 64, 17, 0, WORKER_IP, AGGREGATOR)
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack(">H", ~total & 0xFFFF) + head[12:]
    udp = struct.pack(">HHHH", 48866, AGGREGATOR_PORT, size - 20, 0)
    values = tuple(range(-5, lanes - 5))
    return ethernet + head + udp + Chunk(Kind.INT32, 1, slot, tag, values=values).emit()
