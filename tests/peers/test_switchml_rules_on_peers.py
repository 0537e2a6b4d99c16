"""What docs/protocol.md promises of p4/switchml.p4, asked of the field's own tools too.

The expectations are those of tests/unit/p4: its model of the protocol, and the counter that
each kind of attack has; none of them was copied from a switch's answer.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest
from aggregation_model import INT32, OPENING, RESULT, Contribution
from frames import (
    AGGREGATOR,
    AGGREGATOR_MAC,
    AGGREGATOR_PORT,
    UDP,
    aggregation,
    checksum,
    contribution,
    ipv4,
    udp_checksum,
    worker_address,
    worker_mac,
)
from pairs import compile_with, run_on
from schedules import FLOOD_PORTS, JOBS, SLOTS, jobs_model, schedule

from agglab.testbed.scenario import resolve
from agglab.testbed.scenario.schema import JobSection, Scenario, Switch
from agglab.testbed.systems.summing import attack
from agglab.testbed.systems.summing.counters import COUNTERS
from agglab.testbed.systems.switchml import SwitchML

pytestmark = pytest.mark.peers
PROGRAM = Path(__file__).parents[2] / "p4" / "switchml.p4"
LANES = 5
FLOOD_GROUP, ATTACKER_PORT, NO_PARENT = 1, 4, 511
AT_ONCE = 25
"""Packets sent before what they cause is awaited: an egress queue of BMv2 holds 64."""
JOB_COUNTERS = {
    "new": "contribution_new",
    "duplicate": "contribution_duplicate",
    "stale": "contribution_stale",
    "refused": "contribution_refused",
    "complete": "chunk_complete",
    "repeated": "result_repeated",
}
Check = Callable[[Sequence[str]], None]
PAIRS = [("p4c", "bmv2"), ("p4c", "agglab"), ("agglab", "bmv2"), ("agglab", "agglab")]


@pytest.fixture(scope="session")
def products(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program's JSON by each compiler that a test has asked for, `p4c.json`."""
    return tmp_path_factory.mktemp("switchml")


@pytest.fixture
def check(pair: tuple[str, str], products: Path, tmp_path: Path) -> Check:
    """check(lines): the script holds on the pair of compiler and switch."""
    compiler, target = pair

    def run(lines: Sequence[str]) -> None:
        compiled = products / f"{compiler}.json"
        if not compiled.exists():
            compile_with(compiler, PROGRAM, compiled, [f"-DLANES={LANES}", f"-DSLOTS={SLOTS}"])
        stf, json_path = tmp_path / "script.stf", tmp_path / "switchml.json"
        stf.write_text("\n".join(lines))
        shutil.copy(compiled, json_path)
        failures = run_on(target, json_path, stf)
        assert not failures, "\n".join(failure[:1000] for failure in failures[:5])

    return run


class Groups:
    """Multicast groups as lines of a script; nodes count from 0."""

    def __init__(self) -> None:
        self._nodes = 0

    def lines(self, group: int, ports: Sequence[int]) -> list[str]:
        node, self._nodes = self._nodes, self._nodes + 1
        return [
            f"mc_mgrp_create {group}",
            f"mc_node_create 0 {' '.join(map(str, ports))}",
            f"mc_node_associate {group} {node}",
        ]


def receiver(port: int, job: int, mac: bytes, address: bytes, udp_port: int) -> str:
    return (
        f"add results egress_port:{port} aggregation.job:{job} "
        f"to_worker(mac:0x{mac.hex()}, address:0x{address.hex()}, udp_port:{udp_port})"
    )


def contributor(
    port: int,
    job: int,
    index: int,
    worker: int,
    everybody: int,
    slots: tuple[int, int],
    parent: int,
) -> str:
    """slots: the first, and how many; the group is 10 more than the job's index."""
    return (
        f"add members ingress_port:{port} aggregation.job:{job} contribute(job_index:{index}, "
        f"worker:{worker}, all_workers:{everybody}, first_slot:{slots[0]}, slots:{slots[1]}, "
        f"group:{10 + index}, parent:{parent})"
    )


def owner(port: int, address: bytes) -> str:
    """Whose address packets have to have that come in by a port."""
    return f"add sources ingress_port:{port} belong_to(address:0x{address.hex()})"


def two_jobs() -> Iterator[str]:
    """The tables of tests/unit/p4/conftest.py."""
    groups = Groups()
    yield from groups.lines(FLOOD_GROUP, FLOOD_PORTS)
    for job, index, ports, first_slot, slots in JOBS:
        everybody = (1 << len(ports)) - 1
        yield from groups.lines(10 + index, ports)
        for rank, port in enumerate(ports):
            slice_ = (first_slot, slots)
            yield contributor(port, job, index, 1 << rank, everybody, slice_, NO_PARENT)
            yield receiver(port, job, worker_mac(port), worker_address(port), 48865 + job)


def from_aggregator(mac: bytes, address: bytes, udp_port: int, packet: Contribution) -> bytes:
    """A frame that the switch sends on: to a worker, or to another switch."""
    body = aggregation(packet)
    head = AGGREGATOR_PORT, udp_port, 8 + len(body)
    sum16 = udp_checksum(AGGREGATOR, address, struct.pack(UDP, *head, 0) + body) % 0xFFFF
    datagram = struct.pack(UDP, *head, sum16) + body
    return mac + AGGREGATOR_MAC + b"\x08\0" + ipv4(datagram, AGGREGATOR, address)


def answer(port: int, packet: Contribution) -> str:
    to = worker_mac(port), worker_address(port), 48865 + packet.job
    return f"expect {port} {from_aggregator(*to, packet).hex()} $"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_random_schedules_agree_with_the_model(check: Check, seed: int) -> None:
    model, lines = jobs_model(), list(two_jobs())
    for step, (port, packet) in enumerate(schedule(random.Random(seed), 250, LANES), 1):
        lines.append(f"packet {port} {contribution(port, packet).hex()}")
        receivers, result = model.receive(port, packet) or (set(), None)
        lines += [answer(to, result) for to in sorted(receivers) if result]
        lines += ["wait"] * (step % AT_ONCE == 0)
    lines += [
        f"check_counter aggregation.{name}({job}) packets == {model.counts[what, job]}"
        for what, name in JOB_COUNTERS.items()
        for job in (0, 5, 16)
    ]
    assert all(sum(model.counts[what, job] for job in (0, 5, 16)) for what in JOB_COUNTERS)
    check(lines)


def counter_checks(counted: Counter[str]) -> list[str]:
    """Of the five counters of frames that are in no job, and of contributions by strangers."""
    names = {
        what: COUNTERS[what].name for what in ("forged", "malformed", "forwarded", "unroutable")
    }
    lines = [f"check_counter {name}(0) packets == {counted[w]}" for w, name in names.items()]
    lines.append("check_counter host_errors(0) packets == 0")
    for job in (0, 5):
        lines.append(f"check_counter contribution_refused({job}) packets == 0")
    return [*lines, f"check_counter contribution_refused(16) packets == {counted['refused']}"]


def flooded(frames: Sequence[tuple[str, bytes]]) -> list[str]:
    """A script in which the attacker sends these; what is forwarded is flooded as it came."""
    lines = [*two_jobs(), owner(ATTACKER_PORT, worker_address(ATTACKER_PORT))]
    for step, (counted, frame) in enumerate(frames, 1):
        lines.append(f"packet {ATTACKER_PORT} {frame.hex()}")
        others = [port for port in FLOOD_PORTS if port != ATTACKER_PORT]
        lines += [f"expect {port} {frame.hex()} $" for port in others if counted == "forwarded"]
        lines += ["wait"] * (step % AT_ONCE == 0)
    return [*lines, *counter_checks(Counter(counted for counted, _ in frames))]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_kind_of_attack_is_counted_by_its_counter(check: Check, seed: int) -> None:
    victim = JobSection(name="a", workers=("h[123]",))
    switch = Switch(lanes=LANES, slots=4)
    attacked = resolve(Scenario(name="attacked", switch=switch, jobs=(victim,)))
    frames = SwitchML().attack(str(seed), attacked, "h4")
    chosen = [
        (attack.KINDS[k].counted, frame) for k, frame in islice(frames, 4 * len(attack.KINDS))
    ]
    assert {counted for counted, _ in chosen} == {"refused", "forged", "malformed", "forwarded"}
    check(flooded(chosen))


def tagged(tags: Sequence[int], body: bytes, to: bytes = worker_mac(1)) -> bytes:
    """A frame of IPv4 behind tags of these types."""
    types = [*tags, 0x0800]
    inner = b"".join(struct.pack("!HH", 5, following) for following in types[1:])
    return to + worker_mac(ATTACKER_PORT) + struct.pack("!H", types[0]) + inner + body


def deep_and_short() -> Iterator[tuple[str, bytes]]:
    """(counter, frame): up to six tags of every type, and frames cut at every length."""
    plain = ipv4(b"", worker_address(4), worker_address(1))
    forged = [ipv4(b"", source, worker_address(1)) for source in (AGGREGATOR, worker_address(2))]
    options = bytearray(plain + bytes(4))
    options[0] = 0x46
    for depth in range(7):
        tags = [(0x8100, 0x88A8, 0x9100)[(depth + place) % 3] for place in range(depth)]
        deep = depth > 4
        yield "malformed" if deep else "forwarded", tagged(tags, plain)
        yield "malformed" if deep else "forwarded", tagged(tags, bytes(options))
        for packet in forged:
            yield "malformed" if deep else "forged", tagged(tags, packet)
    yield "unroutable", tagged([0x8100], plain, AGGREGATOR_MAC)
    yield "unroutable", tagged([], plain, AGGREGATOR_MAC)
    for whole in (tagged([0x8100], plain), tagged([], plain)):
        for length in range(1, len(whole)):
            yield "malformed", whole[:length]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_whatever_the_depth_and_the_length(check: Check) -> None:
    check(flooded(list(deep_and_short())))


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_hosts_errors_known_addresses_and_routes(check: Check) -> None:
    """The rest of forwarding: ICMP to the aggregator, a known MAC address, a route."""
    message = struct.pack("!BBHI", 3, 3, checksum(struct.pack("!BBHI", 3, 3, 0, 0)), 0)
    error = ipv4(message, worker_address(4), AGGREGATOR, protocol=1)
    forged = ipv4(message, AGGREGATOR, AGGREGATOR, protocol=1)
    there, dead = (ipv4(b"x", worker_address(4), worker_address(2), ttl=ttl) for ttl in (9, 1))
    routed = ipv4(b"x", worker_address(4), worker_address(2), ttl=8)
    lines = [
        *two_jobs(),
        f"add macs hdr.ethernet.dst:0x{worker_mac(3).hex()} forward(port:3)",
        f"add routes hdr.ipv4.dst:0x{worker_address(2).hex()}/32 "
        f"route(next_hop:0x{worker_mac(2).hex()}, port:2)",
        *(f"packet 4 {tagged([], body, AGGREGATOR_MAC).hex()}" for body in (error, forged, dead)),
        f"packet 4 {tagged([], there, AGGREGATOR_MAC).hex()}",
        f"expect 2 {(worker_mac(2) + AGGREGATOR_MAC).hex()}0800 {routed.hex()} $",
        f"packet 4 {tagged([], there, worker_mac(3)).hex()}",
        f"expect 3 {tagged([], there, worker_mac(3)).hex()} $",
        *(f"check_counter {name}(0) packets == 1" for name in ("host_errors", "forged")),
        "check_counter unroutable(0) packets == 1",
        "check_counter forwarding.forwarded(0) packets == 2",
        "check_counter malformed(0) packets == 0",
    ]
    check(lines)


JOB, CHILDREN, UPLINK = 1, (1, 2), 100
FIRST_TAG = 2**31 + 2  # further from 0 than any tag is ahead of another


def below_another() -> Iterator[str]:
    """A switch of two workers that has a parent."""
    everybody = (1 << len(CHILDREN)) - 1
    yield from Groups().lines(10, CHILDREN)
    for rank, port in enumerate(CHILDREN):
        yield contributor(port, JOB, 0, 1 << rank, everybody, (0, SLOTS), UPLINK)
        yield receiver(port, JOB, worker_mac(port), worker_address(port), 48865 + JOB)
    yield receiver(UPLINK, JOB, AGGREGATOR_MAC, AGGREGATOR, AGGREGATOR_PORT)
    yield (
        f"add members ingress_port:{UPLINK} aggregation.job:{JOB} conclude(job_index:0, "
        f"all_workers:{everybody}, first_slot:0, slots:{SLOTS}, group:10)"
    )


def a_chunk_up_and_down(tag: int, kind: int, rng: random.Random) -> Iterator[str]:
    """A chunk's life at a switch that has a parent, with every repetition that may happen."""

    def packet(result: bool = False) -> Contribution:
        values = tuple(rng.getrandbits(32) for _ in range(LANES))
        shapes = tuple(sorted(rng.getrandbits(144) for _ in range(2)))
        body = ((), shapes) if kind == OPENING else (values, ())
        return Contribution(JOB, 2, tag, kind | RESULT * result, rng.randrange(256), *body)

    first, second, final = packet(), packet(), packet(result=True)
    sums = tuple((a + b) % 2**32 for a, b in zip(first.values, second.values, strict=True))
    shapes = sorted((*first.shapes, *second.shapes))
    exponent = max(first.exponent, second.exponent)
    ends = (shapes[0], shapes[-1]) if shapes else ()
    partial = Contribution(JOB, 2, tag, kind, exponent, sums, ends)
    to_parent = AGGREGATOR_MAC, AGGREGATOR, AGGREGATOR_PORT
    up = f"expect {UPLINK} {from_aggregator(*to_parent, partial).hex()} $"
    down = f"packet {UPLINK} {from_aggregator(*to_parent, final).hex()}"
    one, two = (f"packet {p} {contribution(p, c).hex()}" for p, c in ((1, first), (2, second)))
    yield from (down, one, two, up)  # a final sum that nobody awaits yet
    yield from (one, up, two)  # the first child speaks for both
    yield from (down, answer(1, final), answer(2, final), down)
    yield from (two, answer(2, final), one, answer(1, final))


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_partial_sums_go_up_and_final_sums_down(check: Check) -> None:
    lines, rng = list(below_another()), random.Random(3)
    kinds = (OPENING, INT32, OPENING, OPENING, INT32)
    for tag, kind in enumerate(kinds, FIRST_TAG):
        lines += [*a_chunk_up_and_down(tag, kind, rng), "wait"]
    often = {"chunk_complete": 1, "partial_repeated": 1, "final_new": 1, "final_unneeded": 2}
    lines += [
        f"check_counter aggregation.{name}(0) packets == {times * len(kinds)}"
        for name, times in often.items()
    ]
    check(lines)
