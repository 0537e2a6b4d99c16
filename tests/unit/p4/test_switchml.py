"""p4/switchml.p4 against docs/protocol.md: every rule by name, then random schedules."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest
from aggregation_model import INT32, OPENING, RESULT, SCALED, Contribution, Model
from frames import (
    AGGREGATOR,
    AGGREGATOR_MAC,
    checksum,
    contribution,
    ipv4,
    result,
    worker_address,
    worker_mac,
)
from schedules import schedule
from tables import COUNTERS

from p4native.switch import Exact, Lpm, Pipeline

LANES = 5
JOB_COUNTERS = ("new", "duplicate", "stale", "refused", "complete", "repeated")


def counted(pipeline: Pipeline, what: str, job: int) -> int:
    return pipeline.counters.read(f"SwitchmlIngress.aggregation.{COUNTERS[what]}", job)[0]


def malformed(pipeline: Pipeline) -> int:
    return pipeline.counters.read("SwitchmlIngress.forwarding.malformed", 0)[0]


@pytest.fixture
def pipeline(programmed: Callable[[int], Pipeline]) -> Pipeline:
    return programmed(LANES)


def values(rank: int, tag: int, lanes: int = LANES) -> tuple[int, ...]:
    """Different at every rank, tag and lane, with carries out of many lanes' top bit."""
    return tuple(
        (0x9E3779B9 * (lane + 1) * (rank + 3) + tag * 7919) % 2**32 for lane in range(lanes)
    )


def send(pipeline: Pipeline, port: int, packet: Contribution) -> dict[int, Contribution]:
    """What each port gets; every result's addressing is checked."""
    answers = {}
    for egress, frame in pipeline.process(port, contribution(port, packet)):
        got = result(frame)
        assert (got.mac, got.address) == (worker_mac(egress), worker_address(egress))
        assert got.udp_port == 48865 + packet.job
        answers[egress] = got.packet
    return answers


def chunk(
    rank: int,
    tag: int = 1,
    slot: int = 0,
    kind: int = INT32,
    exponent: int = 0,
    shape: int = 7,
) -> Contribution:
    if kind == OPENING:
        return Contribution(1, slot, tag, kind, exponent, shapes=(shape, shape))
    return Contribution(1, slot, tag, kind, exponent, values(rank, tag))


def test_last_contribution_multicasts_the_sum(pipeline: Pipeline) -> None:
    assert send(pipeline, 1, chunk(0)) == {}
    assert send(pipeline, 2, chunk(1)) == {}
    answers = send(pipeline, 3, chunk(2))
    expected = tuple(sum(v) % 2**32 for v in zip(*(values(r, 1) for r in range(3)), strict=True))
    assert answers == {p: Contribution(1, 0, 1, RESULT, 0, expected) for p in (1, 2, 3)}
    assert [counted(pipeline, what, 0) for what in ("new", "complete")] == [3, 1]


def test_duplicate_at_an_incomplete_slot_is_dropped(pipeline: Pipeline) -> None:
    send(pipeline, 1, chunk(0))
    assert send(pipeline, 1, chunk(0)) == {}
    assert [counted(pipeline, what, 0) for what in ("new", "duplicate", "repeated")] == [1, 1, 0]


def test_duplicate_at_a_complete_slot_is_answered_to_its_sender_alone(pipeline: Pipeline) -> None:
    for rank in range(3):
        complete = send(pipeline, rank + 1, chunk(rank))
    assert send(pipeline, 2, chunk(1)) == {2: complete[2]}
    assert [counted(pipeline, what, 0) for what in ("duplicate", "repeated")] == [1, 1]


def test_stale_packet_is_refused_where_the_reference_adds_it(pipeline: Pipeline) -> None:
    """A late copy of tag 1 arrives during tag 3 (the same set): SwitchML sums 70 for 120."""

    def one(value: int, tag: int) -> Contribution:
        return Contribution(7, 0, tag, INT32, 0, (value,) * LANES)

    for tag in (1, 2):
        assert send(pipeline, 2, one(10, tag)) == {}
        assert send(pipeline, 3, one(20, tag))[2].values == (30,) * LANES
    assert send(pipeline, 2, one(50, 3)) == {}
    assert send(pipeline, 3, one(20, 1)) == {}  # late copy
    assert send(pipeline, 3, one(70, 3))[3].values == (120,) * LANES
    assert counted(pipeline, "stale", 5) == 1


FIRST_TAGS = (0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1)


@pytest.mark.parametrize("kind", [INT32, SCALED, OPENING])
@pytest.mark.parametrize("first", FIRST_TAGS)
def test_a_fresh_switch_takes_any_first_tag(pipeline: Pipeline, first: int, kind: int) -> None:
    for tag in (first, (first + 1) % 2**32, (first + 2) % 2**32):
        for rank in range(3):
            answers = send(pipeline, rank + 1, chunk(rank, tag, kind=kind))
        assert answers[1].tag == tag
    late = (first - 2) % 2**32
    assert send(pipeline, 1, chunk(0, late, kind=kind)) == {}
    assert [counted(pipeline, what, 0) for what in ("new", "stale", "complete")] == [9, 1, 3]


def test_an_opening_brings_back_the_smallest_and_the_largest_shape(pipeline: Pipeline) -> None:
    """Shapes that differ in one bit, at both ends and beyond 64 bits, come in any order."""
    for tag, bit in enumerate((0, 63, 64, 127, 128, 143), 1):
        shapes = (1 << 100, 1 << 100, 1 << 100 ^ 1 << bit)
        for slot in range(3):
            for rank in range(3):
                packet = chunk(rank, tag, slot, OPENING, shape=shapes[rank - slot])
                answers = send(pipeline, rank + 1, packet)
            assert {a.shapes for a in answers.values()} == {(min(shapes), max(shapes))}
            again = send(pipeline, 1, chunk(0, tag, slot, OPENING, shape=shapes[-slot]))
            assert again == {1: answers[1]}
    assert counted(pipeline, "refused", 0) == 0


def test_tags_wrap(pipeline: Pipeline) -> None:
    for tag in (2**31 - 1, 2**32 - 3, 1):
        for rank in range(3):
            answers = send(pipeline, rank + 1, chunk(rank, tag))
        assert answers[1].tag == tag
    assert counted(pipeline, "stale", 0) == 0


def test_kinds_do_not_mix_in_one_chunk(pipeline: Pipeline) -> None:
    send(pipeline, 1, chunk(0, kind=SCALED))
    for kind in (INT32, OPENING):
        assert send(pipeline, 2, chunk(1, kind=kind)) == {}
    assert counted(pipeline, "refused", 0) == 2
    send(pipeline, 2, chunk(1, kind=SCALED))
    assert send(pipeline, 3, chunk(2, kind=SCALED))[1].kind == SCALED | RESULT


def test_largest_exponent_comes_back(pipeline: Pipeline) -> None:
    for kind, tag in ((OPENING, 1), (SCALED, 2)):
        for rank, exponent in enumerate((130, 255, 0)):
            answers = send(pipeline, rank + 1, chunk(rank, tag, kind=kind, exponent=exponent))
        assert {p: a.exponent for p, a in answers.items()} == {1: 255, 2: 255, 3: 255}
        assert send(pipeline, 3, chunk(2, tag, kind=kind))[3].exponent == 255


def test_a_set_is_overwritten_not_added_to(pipeline: Pipeline) -> None:
    for tag in (1, 2, 3):
        for rank in range(3):
            answers = send(pipeline, rank + 1, chunk(rank, tag))
        parts = (values(r, tag) for r in range(3))
        assert answers[1].values == tuple(sum(v) % 2**32 for v in zip(*parts, strict=True))


@pytest.mark.parametrize(
    ("port", "packet", "job_index"),
    [
        (4, chunk(0), 16),  # a port that is in no job
        (1, Contribution(7, 0, 1, INT32, 0, values(0, 1)), 16),  # another job's number
        (1, chunk(0, slot=4), 0),  # the first slot past the job's own
        (1, chunk(0, slot=65535), 0),
        (1, Contribution(1, 0, 1, OPENING, 0, values(0, 1)), 0),  # values where shapes belong
        (1, Contribution(1, 0, 1, OPENING, 0, ()), 0),
        (1, Contribution(1, 0, 1, OPENING, 0, (), (1,)), 0),
        (1, Contribution(1, 0, 1, OPENING, 0, (), (1, 1, 1)), 0),
        (1, Contribution(1, 0, 1, INT32, 0, (), (1, 1)), 0),
        (1, Contribution(1, 0, 1, OPENING | RESULT, 0, (), (1, 1)), 0),
        (1, Contribution(1, 0, 1, INT32 | RESULT, 0, values(0, 1)), 0),  # a result, forged
        (1, Contribution(1, 0, 1, 3, 0, ()), 0),
        (1, Contribution(1, 0, 1, INT32, 0, values(0, 1, LANES + 1)), 0),  # too long
        (1, Contribution(1, 0, 1, INT32, 0, values(0, 1, LANES - 1)), 0),  # too short
        (1, Contribution(1, 0, 1, INT32, 0, ()), 0),
    ],
)
def test_foreign_packet_changes_nothing(
    pipeline: Pipeline, port: int, packet: Contribution, job_index: int
) -> None:
    assert pipeline.process(port, contribution(port, packet)) == []
    assert counted(pipeline, "refused", job_index) == 1
    for rank in range(3):
        answers = send(pipeline, rank + 1, chunk(rank))
    expected = tuple(sum(v) % 2**32 for v in zip(*(values(r, 1) for r in range(3)), strict=True))
    assert answers[1].values == expected


def test_wrong_version_is_refused(pipeline: Pipeline) -> None:
    assert pipeline.process(1, contribution(1, chunk(0), version=2)) == []
    assert counted(pipeline, "refused", 0) == 1


def test_every_truncation_is_counted_and_changes_nothing(pipeline: Pipeline) -> None:
    frame = contribution(1, chunk(0))
    for length in range(len(frame)):
        assert pipeline.process(1, frame[:length]) == []
    assert malformed(pipeline) + counted(pipeline, "refused", 0) == len(frame)
    assert counted(pipeline, "new", 0) == 0


def test_damaged_ipv4_header_is_refused(pipeline: Pipeline) -> None:
    """Every bit of the header, one at a time; none may be summed."""
    frame = contribution(1, chunk(0))
    for bit in range(14 * 8, 34 * 8):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        for _, out in pipeline.process(1, bytes(damaged)):
            assert out == bytes(damaged)  # at most forwarded, as it came
    assert counted(pipeline, "new", 0) == 0


def test_every_damaged_bit_is_refused(pipeline: Pipeline) -> None:
    """UDP ports to the last value, one bit at a time: the checksum catches what no rule does."""
    frame = contribution(1, chunk(0))
    for bit in range(34 * 8, len(frame) * 8):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        assert pipeline.process(1, bytes(damaged)) == []
    assert counted(pipeline, "new", 0) == 0


def summing_to(sum16: int) -> Contribution:
    """A contribution of worker 0 whose UDP checksum is `sum16`: its last value sees to that."""
    plain = chunk(0)
    for last in range(2**16):
        packet = Contribution(1, 0, 1, INT32, 0, (*plain.values[:-1], last))
        if contribution(1, packet)[40:42] == sum16.to_bytes(2, "big"):
            return packet
    raise AssertionError("every sum is reached by one of the values")


def test_a_sum_of_zero_is_checked_like_any_other(pipeline: Pipeline) -> None:
    """RFC 768 writes it 0xffff, since 0 says that there is none."""
    frame = contribution(1, summing_to(0xFFFF))
    for bit in range(42 * 8, len(frame) * 8):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        assert pipeline.process(1, bytes(damaged)) == []
    assert counted(pipeline, "new", 0) == 0
    pipeline.process(1, frame)
    assert counted(pipeline, "new", 0) == 1


def test_no_udp_checksum_is_accepted(pipeline: Pipeline) -> None:
    """RFC 768: 0 says that the sender computed none."""
    frame = bytearray(contribution(1, chunk(0)))
    frame[40:42] = b"\0\0"
    pipeline.process(1, bytes(frame))
    assert counted(pipeline, "new", 0) == 1


def test_unknown_address_is_flooded_but_not_back(pipeline: Pipeline) -> None:
    arp = b"\xff" * 6 + worker_mac(1) + b"\x08\x06" + bytes(range(46))
    assert pipeline.process(1, arp) == [(2, arp), (3, arp), (4, arp)]


def test_known_address_is_forwarded_untouched(pipeline: Pipeline) -> None:
    key = Exact(int.from_bytes(worker_mac(2), "big"))
    pipeline.tables.add(
        "SwitchmlIngress.forwarding.macs", [key], "SwitchmlIngress.forwarding.forward", [2]
    )
    plain = struct.pack("!6s6sH", worker_mac(2), worker_mac(1), 0x0800)
    bad_checksum = bytearray(plain + ipv4(b"ping", worker_address(1), worker_address(2), 1))
    bad_checksum[24] ^= 1
    assert pipeline.process(1, bytes(bad_checksum)) == [(2, bytes(bad_checksum))]


def test_routing(pipeline: Pipeline) -> None:
    pipeline.tables.add(
        "SwitchmlIngress.forwarding.routes",
        [Lpm(0x0A000003, 32)],
        "SwitchmlIngress.forwarding.route",
        [int.from_bytes(worker_mac(3), "big"), 3],
    )
    head = struct.pack("!6s6sH", AGGREGATOR_MAC, worker_mac(1), 0x0800)

    def routed(ttl: int, to: int = 3) -> list[tuple[int, bytes]]:
        datagram = ipv4(b"data", worker_address(1), worker_address(to), 6, ttl)
        return pipeline.process(1, head + datagram)

    [(port, frame)] = routed(64)
    assert port == 3
    assert frame[:12] == worker_mac(3) + AGGREGATOR_MAC
    assert frame[22] == 63
    assert checksum(frame[14:34]) == 0
    assert frame[34:] == b"data"
    assert routed(1) == []
    assert routed(64, to=9) == []


def test_what_is_for_the_aggregator_but_no_contribution_is_counted(pipeline: Pipeline) -> None:
    head = struct.pack("!6s6sH", AGGREGATOR_MAC, worker_mac(1), 0x0800)
    assert pipeline.process(1, head + ipv4(b"GRE?", worker_address(1), AGGREGATOR, 47)) == []
    assert malformed(pipeline) == 1


@pytest.mark.parametrize("seed", range(20))
def test_random_schedules_agree_with_the_model(pipeline: Pipeline, model: Model, seed: int) -> None:
    for port, packet in schedule(random.Random(seed), 400, LANES):
        expected = model.receive(port, packet)
        receivers, answer = expected or (set(), None)
        assert send(pipeline, port, packet) == dict.fromkeys(receivers, answer)
    for what in JOB_COUNTERS:
        for job in (0, 5, 16):
            assert counted(pipeline, what, job) == model.counts[what, job], (what, job)


@pytest.mark.long(but=["1"])
@pytest.mark.parametrize("lanes", [1, 32, 63, 64, 65, 365, 2240])
def test_every_width_sums_lane_by_lane(programmed: Callable[[int], Pipeline], lanes: int) -> None:
    pipeline = programmed(lanes)
    for rank in range(3):
        answers = send(pipeline, rank + 1, Contribution(1, 3, 2, SCALED, 9, values(rank, 2, lanes)))
    parts = (values(rank, 2, lanes) for rank in range(3))
    assert answers[2].values == tuple(sum(v) % 2**32 for v in zip(*parts, strict=True))


def test_errors_of_hosts_have_a_counter_of_their_own(pipeline: Pipeline) -> None:
    """ICMP to the aggregator, of a host whose program has ended; not from the aggregator itself."""
    unreachable = struct.pack("!BBHI", 3, 3, 0, 0)
    unreachable = struct.pack("!BBHI", 3, 3, checksum(unreachable), 0)
    head = AGGREGATOR_MAC + worker_mac(1) + b"\x08\0"
    for source, errors, lies in ((worker_address(1), 1, 0), (AGGREGATOR, 1, 1)):
        frame = head + ipv4(unreachable, source, AGGREGATOR, protocol=1)
        assert pipeline.process(1, frame) == []
        assert pipeline.counters.read("SwitchmlIngress.forwarding.host_errors", 0)[0] == errors
        assert pipeline.counters.read("SwitchmlIngress.forwarding.forged", 0)[0] == lies
        assert malformed(pipeline) == 0
