"""The aggregation program on the field's own tools: a two-worker job summed bit for bit.

Frames are packed here by hand, apart from hosts.wire, so that both sides of the wire are checked.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from pairs import compile_with, need_pair, run_on

pytestmark = pytest.mark.peers
PROGRAM = Path(__file__).parents[2] / "p4" / "switchml.p4"
AGGREGATOR, AGGREGATOR_MAC, AGGREGATOR_PORT = 0x0A00FFFE, "02000000fffe", 48864
JOB, SLOT, NO_PARENT = 5, 3, 511
RESULT = 0x80


def ones_complement(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def mac(worker: int) -> str:
    return f"0200000000{worker:02x}"


def ip(worker: int) -> int:
    return 0x0A000000 + worker


def frame(
    ends: tuple[str, int, int], to: tuple[str, int, int], aggregation: bytes, udp_sum: bool
) -> str:
    """An Ethernet frame between (mac, address, port) ends, as hexadecimal digits."""
    length = 20 + 8 + len(aggregation)
    head = struct.pack(">BBHHHBBHII", 0x45, 0, length, 0, 0, 64, 17, 0, ends[1], to[1])
    head = head[:10] + ones_complement(head).to_bytes(2, "big") + head[12:]
    ports = struct.pack(">HHH", ends[2], to[2], length - 20)
    pseudo = struct.pack(">IIBBH", ends[1], to[1], 0, 17, length - 20)
    check = ones_complement(pseudo + ports + aggregation) if udp_sum else 0
    udp = ports + check.to_bytes(2, "big") + aggregation
    return f"{to[0]}{ends[0]}0800{head.hex()}{udp.hex()}"


def aggregation(kind: int, exponent: int, tag: int, values: list[int]) -> bytes:
    head = struct.pack(">BBHHBBI", 1, kind, JOB, SLOT, exponent, 0, tag)
    return head + struct.pack(f">{len(values)}I", *values)


def script(lanes: int) -> str:
    """Three chunks on one slot; after each, worker 1 asks again and is answered alone."""
    rng = random.Random(lanes)
    lines = ["mc_mgrp_create 1", "mc_node_create 0 1 2", "mc_node_associate 1 0"]
    for worker in (1, 2):
        lines += [
            f"add members ingress_port:{worker} aggregation.job:{JOB} contribute(job_index:0, "
            f"worker:{worker}, all_workers:3, first_slot:0, slots:8, group:1, parent:{NO_PARENT})",
            f"add results egress_port:{worker} aggregation.job:{JOB} "
            f"to_worker(mac:0x{mac(worker)}, address:{ip(worker)}, udp_port:48870)",
        ]
    aggregator = (AGGREGATOR_MAC, AGGREGATOR, AGGREGATOR_PORT)
    for tag in (1, 2, 3):
        values = {w: [rng.getrandbits(32) for _ in range(lanes)] for w in (1, 2)}
        exponents = {1: 100 + tag, 2: 98 + 2 * tag}
        sums = [(a + b) & 0xFFFFFFFF for a, b in zip(values[1], values[2], strict=True)]
        answer = aggregation(RESULT, max(exponents.values()), tag, sums)
        for worker in (1, 2, 1):
            sender = (mac(worker), ip(worker), 48870)
            chunk = aggregation(0, exponents[worker], tag, values[worker])
            lines.append(f"packet {worker} {frame(sender, aggregator, chunk, tag == 2)}")
            lines.append(f"expect {worker} {frame(aggregator, sender, answer, True)} $")
    return "\n".join(
        [
            *lines,
            "check_counter contribution_new(0) packets == 6",
            "check_counter result_repeated(0) packets == 3",
            "check_counter contribution_refused(0) packets == 0",
        ]
    )


@pytest.mark.parametrize("lanes", [32, 256, 365, 2240])
@pytest.mark.parametrize(
    ("compiler", "target"), [("p4c", "bmv2"), ("p4c", "agglab"), ("agglab", "bmv2")]
)
def test_aggregates(compiler: str, target: str, lanes: int, tmp_path: Path) -> None:
    need_pair(compiler, target)
    stf = tmp_path / "switchml.stf"
    stf.write_text(script(lanes))
    json_path = tmp_path / "switchml.json"
    compile_with(compiler, PROGRAM, json_path, [f"-DLANES={lanes}"])
    failures = run_on(target, json_path, stf)
    assert not failures, "\n".join(f[:400] for f in failures)
