"""p4/omnireduce.p4 against systems/omnireduce/README.md: rules by name, random schedules against a
model, and trees of switches whose workers walk their columns under every mishap."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from frames import worker_address
from omnireduce_model import (
    FUSED,
    INT32,
    NONE,
    OPENING,
    RESULT,
    SCALED,
    UPLINK,
    Packet,
    Switch,
    frame,
    frame_of,
    fused,
    read,
)
from rules.omnireduce import (
    COUNTERS,
    INDEX,
    JOB,
    LANES,
    PORTS,
    SLOTS,
    Walker,
    at_node,
    job_at,
    schedule,
)
from tables import NO_PARENT, write_entries
from test_packet_checks import rewritten
from trees import planted

from agglab.systems.omnireduce.system import OmniReduce
from agglab.testbed.scenario import resolve
from agglab.testbed.schema.network_sections import Switch as SwitchKeys
from agglab.testbed.schema.scenario import JobSection, Scenario
from p4native.switch import Exact, Pipeline

ROOT = Path(__file__).resolve().parents[3]
REFUSALS = ("refused", "forged", "malformed", "forwarded", "unroutable")
INGRESS = "OmnireduceIngress.aggregation."


@pytest.fixture(scope="session")
def omnireduce(tmp_path_factory: pytest.TempPathFactory) -> Path:
    json = tmp_path_factory.mktemp("omnireduce") / "omnireduce.json"
    command = [sys.executable, "-m", "p4native.compiler", "p4/omnireduce.p4", "-o", str(json)]
    subprocess.run([*command, f"-DLANES={LANES}", f"-DSLOTS={SLOTS}"], cwd=ROOT, check=True)
    return json


def counted(pipeline: Pipeline) -> dict[str, int]:
    found = {
        what: pipeline.counters.read(INGRESS + name, INDEX)[0] for what, name in COUNTERS.items()
    }
    found["refused"] += pipeline.counters.read(INGRESS + "contribution_refused", 16)[0]
    return {what: count for what, count in found.items() if count}


@pytest.fixture
def pipeline(omnireduce: Path) -> Pipeline:
    made = Pipeline.load(omnireduce)
    write_entries(made, job_at())
    return made


@pytest.fixture
def leaf(omnireduce: Path) -> Pipeline:
    """A switch with a parent."""
    made = Pipeline.load(omnireduce)
    write_entries(made, job_at(parent=UPLINK))
    return made


def send(pipeline: Pipeline, port: int, packet: Packet) -> dict[int, Packet]:
    return {to: read(out) for to, out in pipeline.process(port, frame(port, packet))}


def values(rank: int, block: int = 0) -> tuple[int, ...]:
    return tuple((0x9E3779B9 * (i + 1) * (rank + 3) + block * 7919) % 2**32 for i in range(LANES))


def total(*parts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(v) % 2**32 for v in zip(*parts, strict=True))


def bare(next: int = NONE, exponent: int = 0, tag: int = 1, block: int = 0) -> Packet:
    return Packet(JOB, 0, tag, INT32, block, next, exponent)


def full(rank: int, next: int = NONE, exponent: int = 0, tag: int = 1, block: int = 0) -> Packet:
    return replace(bare(next, exponent, tag, block), values=values(rank, block))


def test_the_sum_of_those_who_have_something_goes_to_all(pipeline: Pipeline) -> None:
    assert send(pipeline, 1, full(0, next=8)) == send(pipeline, 3, full(2, next=4)) == {}
    answers = send(pipeline, 2, bare(next=12))
    expected = Packet(JOB, 0, 1, INT32 | RESULT, 0, 4, 0, total(values(0), values(2)))
    assert answers == dict.fromkeys(PORTS, expected)
    assert counted(pipeline) == {"new": 3, "complete": 1}


def test_whoever_contributes_first_with_headers_alone_leaves_no_values(pipeline: Pipeline) -> None:
    """What the cell held before, under an older tag, is not added to."""
    for port in PORTS:
        send(pipeline, port, full(port, tag=1))
    for port in (1, 2):
        assert send(pipeline, port, bare(tag=3)) == {}
    assert send(pipeline, 3, full(7, tag=3))[1].values == values(7)


def test_where_nobody_has_anything_nothing_is_answered(pipeline: Pipeline) -> None:
    for port in PORTS:
        send(pipeline, port, full(port, tag=1))
        answers = send(pipeline, port, bare(next=port, tag=3, block=8))
    assert answers[2] == Packet(JOB, 0, 3, INT32 | RESULT, 8, 1)


def test_a_bare_duplicate_is_answered_with_the_values(pipeline: Pipeline) -> None:
    for rank, port in enumerate(PORTS):
        answers = send(pipeline, port, bare(next=8) if port == 2 else full(rank, next=8))
    assert send(pipeline, 2, bare(next=8)) == {2: answers[2]}
    assert answers[2].values == total(values(0), values(2))
    assert counted(pipeline) == {"new": 3, "complete": 1, "duplicate": 1, "repeated": 1}


def test_a_duplicate_at_an_incomplete_cell_adds_nothing(pipeline: Pipeline) -> None:
    for _ in range(3):
        assert send(pipeline, 1, full(0)) == {}
    send(pipeline, 2, full(1))
    assert send(pipeline, 3, full(2))[3].values == total(*(values(rank) for rank in range(3)))


ANNOUNCED = [
    ([(8, 3), (4, 200), (12, 255)], (4, 200)),  # who is first alone gives the exponent
    ([(4, 7), (4, 9), (4, 8)], (4, 9)),
    ([(4, 9), (8, 255), (4, 7)], (4, 9)),
    ([(NONE, 0), (NONE, 0), (NONE, 0)], (NONE, 0)),
    ([(NONE, 0), (NONE - 1, 1), (NONE, 255)], (NONE - 1, 1)),
    ([(0, 0), (0, 255), (0, 128)], (0, 255)),
    ([(1 << 31, 5), ((1 << 31) - 1, 1), (0xFFFF, 0)], (0xFFFF, 0)),
]


@pytest.mark.parametrize("announced, expected", ANNOUNCED, ids=str)
def test_the_first_block_of_all_is_next_with_the_largest_exponent_of_those_who_have_it(
    pipeline: Pipeline, announced: list[tuple[int, int]], expected: tuple[int, int]
) -> None:
    for slot, order in enumerate([(0, 1, 2), (2, 1, 0), (1, 2, 0)]):
        for port, which in zip(PORTS, order, strict=True):
            packet = replace(bare(*announced[which]), slot=slot)
            answers = send(pipeline, port, packet)
        assert (answers[1].next, answers[1].exponent) == expected
        assert send(pipeline, 2, packet)[2] == answers[2]


def test_the_slot_behind_a_jobs_last_one_is_not_its_own(omnireduce: Path) -> None:
    pipeline = Pipeline.load(omnireduce)
    write_entries(pipeline, job_at(slots=SLOTS - 1))
    for slot, found in ((SLOTS - 2, {"new": 1}), (SLOTS - 1, {"new": 1, "refused": 1})):
        assert send(pipeline, 1, replace(bare(), slot=slot)) == {}
        assert counted(pipeline) == found


def test_another_block_under_the_same_tag_is_refused(pipeline: Pipeline) -> None:
    send(pipeline, 1, full(0, block=4))
    assert send(pipeline, 2, full(1, block=8)) == send(pipeline, 1, bare(block=8)) == {}
    assert counted(pipeline) == {"new": 1, "refused": 2}


def test_another_kind_under_the_same_tag_is_refused(pipeline: Pipeline) -> None:
    send(pipeline, 1, bare())
    assert send(pipeline, 2, replace(full(1), kind=SCALED)) == {}
    opening = replace(bare(), kind=OPENING, shapes=(1, 1))
    assert send(pipeline, 2, opening) == {}
    assert counted(pipeline) == {"new": 1, "refused": 2}


def test_a_stale_packet_changes_nothing(pipeline: Pipeline) -> None:
    for tag in (1, 2):
        for rank, port in enumerate(PORTS):
            send(pipeline, port, full(rank, tag=tag))
    for port in (1, 2):
        send(pipeline, port, bare(next=7, tag=3))
    assert send(pipeline, 3, full(2, next=1, tag=1)) == {}
    assert send(pipeline, 3, bare(next=9, tag=3))[1] == Packet(JOB, 0, 3, INT32 | RESULT, 0, 7)
    assert counted(pipeline)["stale"] == 1


def test_an_opening_brings_both_shapes_and_the_first_block(pipeline: Pipeline) -> None:
    for tag, bit in enumerate((0, 63, 64, 127, 128, 143), 1):
        shapes = (1 << 100, 1 << 100, 1 << 100 ^ 1 << bit)
        for rank, port in enumerate(PORTS):
            pair = (shapes[rank], shapes[rank])
            packet = Packet(JOB, 0, tag, OPENING, 0, 8 - rank, 3 * rank, shapes=pair)
            answers = send(pipeline, port, packet)
        ends = min(shapes), max(shapes)
        assert answers[1] == Packet(JOB, 0, tag, OPENING | RESULT, 0, 6, 6, shapes=ends)
        assert send(pipeline, 2, packet) == {2: answers[2]}


KINDS = {
    "values": (full(0), 4 * LANES),
    "bare": (bare(), 0),
    "opening": (replace(bare(), kind=OPENING, shapes=(1, 1)), 36),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_one_length(pipeline: Pipeline, kind: str) -> None:
    packet, right = KINDS[kind]
    headers = frame(1, packet)[:62]
    for extra in range(4 * LANES + 60):
        assert pipeline.process(1, rewritten(headers, extra)) == []
        accepted = {"new": 1} if extra >= right else {}
        refusals = extra + 1 - bool(accepted)
        assert counted(pipeline) == {**accepted, **({"refused": refusals} if refusals else {})}


def test_other_kinds_are_refused(pipeline: Pipeline) -> None:
    """SwitchML's and those of systems between hosts; an opening never has headers alone."""
    known = (0x30, 0x31, 0x32, 0x70, 0x71)
    foreign = [k for k in range(128) if k not in known and k & ~FUSED not in known]
    for kind in foreign:
        for size in (0, 36, 4 * LANES):
            changed = bytearray(frame(1, bare())[:62])
            changed[43] = kind
            assert pipeline.process(1, rewritten(bytes(changed), size)) == []
    assert counted(pipeline) == {"refused": 3 * len(foreign)}


def test_a_wrong_udp_checksum_is_refused(pipeline: Pipeline) -> None:
    """It covers the words of the column too."""
    good = frame(1, full(0, next=77))
    for at in (54, 57, 58, 61, 62, len(good) - 1):
        bad = bytearray(good)
        bad[at] ^= 1
        assert pipeline.process(1, bytes(bad)) == []
    assert counted(pipeline) == {"refused": 6}


FUSED_WITH = {
    "headers alone": bare(next=9, tag=2, block=3),
    "values": full(0, next=9, tag=2, block=3),
    "an opening": Packet(JOB, 0, 2, OPENING, 0, 9, 5, shapes=(3, 4)),
}


@pytest.mark.parametrize("count", [1, 2, 20])
@pytest.mark.parametrize("kind", FUSED_WITH)
def test_fused_packets_are_taken_as_if_each_came_alone(
    omnireduce: Path, kind: str, count: int
) -> None:
    """Entries first; what is answered to each is what it would be answered alone."""
    first = FUSED_WITH[kind]
    entries = [
        replace(first, slot=n % 3 + 1, tag=n // 3 + 1, block=0 if first.shapes else 7, values=None)
        for n in range(count)
    ]
    entries = [replace(p, next=NONE if p.slot == 2 else p.block + 65534) for p in entries]
    alone, together = Pipeline.load(omnireduce), Pipeline.load(omnireduce)
    for pipeline in (alone, together):
        write_entries(pipeline, job_at())
    for port in PORTS:
        expected = [out for p in (*entries, first) for out in alone.process(port, frame(port, p))]
        assert together.process(port, frame(port, *entries, first)) == expected
    assert len(expected) >= len(PORTS)
    found = counted(together)
    assert found.pop("taken_apart") == len(PORTS) * count and found == counted(alone)


def test_a_duplicate_among_entries_is_answered_to_its_sender_alone(pipeline: Pipeline) -> None:
    entries = [replace(bare(), slot=slot) for slot in (0, 1)]
    for port in PORTS:
        send(pipeline, port, entries[0])
    out = pipeline.process(2, frame(2, *entries, replace(bare(), slot=2)))
    assert [(port, read(got).slot) for port, got in out] == [(2, 0)]


def test_fused_packets_are_as_long_as_they_say(pipeline: Pipeline) -> None:
    """One entry at least, twenty at most, none cut off."""
    body = fused([replace(bare(), slot=1), bare()])
    for size in (*range(20, 33), 20 + 13 * 21, 20 + 13 * 21 - 1, 400):
        refused = counted(pipeline).get("refused", 0)
        cut = (body + bytes(400))[:size]
        assert pipeline.process(1, frame_of(1, JOB, cut)) == []
        assert counted(pipeline) == {"refused": refused + 1}, size
    short = bytearray(frame(1, replace(bare(), slot=1), bare()))
    assert pipeline.process(1, bytes(short[:-1])) == []
    assert counted(pipeline) == {"refused": refused + 2}
    assert pipeline.process(1, frame_of(1, JOB, body + bytes(5))) == []
    assert counted(pipeline) == {"new": 1, "taken_apart": 1, "refused": refused + 3}


def test_who_is_no_member_has_nothing_taken_apart(pipeline: Pipeline, leaf: Pipeline) -> None:
    packets = [replace(bare(), slot=slot) for slot in (1, 2, 0)]
    assert pipeline.process(4, frame(4, *packets)) == []
    assert pipeline.process(1, frame(1, *(replace(p, job=9) for p in packets))) == []
    results = [replace(p, kind=p.kind | RESULT) for p in packets]
    assert pipeline.process(1, frame(1, *results)) == []
    assert leaf.process(UPLINK, frame(UPLINK, *results)) == []
    assert leaf.process(UPLINK, frame(UPLINK, *packets)) == []
    assert counted(pipeline) == {"refused": 3} and counted(leaf) == {"refused": 2}


def test_the_checksum_covers_entries(pipeline: Pipeline) -> None:
    good = frame(1, replace(bare(), slot=1), replace(bare(), slot=2), full(0))
    for at in range(len(good) - 26, len(good)):
        bad = bytearray(good)
        bad[at] ^= 1
        assert pipeline.process(1, bytes(bad)) == []
    assert counted(pipeline) == {"refused": 26}
    assert pipeline.process(1, good) == []
    assert counted(pipeline) == {"refused": 26, "new": 3, "taken_apart": 2}


@pytest.mark.parametrize("first", [0, 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_fresh_switch_takes_any_first_tag(pipeline: Pipeline, first: int) -> None:
    for tag in (first, (first + 1) % 2**32, (first + 2) % 2**32):
        for rank, port in enumerate(PORTS):
            answers = send(pipeline, port, full(rank, tag=tag))
        assert answers[1].tag == tag
    assert send(pipeline, 1, full(0, tag=(first - 2) % 2**32)) == {}
    assert counted(pipeline) == {"new": 9, "complete": 3, "stale": 1}


def test_every_kind_of_attack_is_counted_by_its_counter_and_none_is_answered(
    pipeline: Pipeline,
) -> None:
    """From port 4, which leads to a host of no job."""
    sources, set_owner = (
        f"OmnireduceIngress.forwarding.{n}" for n in ("sources", "set_owner_address")
    )
    owner = int.from_bytes(worker_address(4), "big")
    pipeline.tables.add(sources, [Exact(4)], set_owner, [owner])
    pipeline.replication.set_multicast_group(1, [(port, 0) for port in (*PORTS, 4)])
    switch, victim = SwitchKeys(lanes=LANES, slots=SLOTS), JobSection(name="a", workers=("h[123]",))
    scenario = Scenario(name="attacked", system="omnireduce", switch=switch, jobs=(victim,))
    kinds = OmniReduce.attack_kinds
    sums = {kind: OmniReduce.counters[kind].name for kind in REFUSALS}

    def counts() -> dict[str, int]:
        counters = pipeline.program.counters
        places = {k: next(c for c in counters if c.endswith(f".{n}")) for k, n in sums.items()}
        return {
            k: sum(pipeline.counters.read(name, i)[0] for i in range(counters[name].size))
            for k, name in places.items()
        }

    seen = set()
    for kind, attack in islice(OmniReduce().attack("7", resolve(scenario), "h4"), 40 * len(kinds)):
        before, out = counts(), pipeline.process(4, attack)
        counted_by = kinds[kind].counted
        assert counts() == {**before, counted_by: before[counted_by] + 1}, kind
        assert all(copy == attack for _, copy in out), kind
        assert bool(out) == (counted_by == "forwarded"), kind
        seen |= {(kind, attack[43] & bit) for bit in (0x40, FUSED)}
    assert {kind for kind, _ in seen} == set(kinds)
    assert {("contribution", bits) for bits in (0, 0x40, FUSED)} <= seen


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("top", [True, False], ids=["root", "leaf"])
def test_random_schedules_match_the_model(omnireduce: Path, top: bool, seed: int) -> None:
    pipeline = Pipeline.load(omnireduce)
    write_entries(pipeline, job_at(parent=NO_PARENT if top else UPLINK))
    model = Switch(JOB, PORTS, SLOTS, has_parent=not top)
    for step, (port, packets) in enumerate(schedule(random.Random(seed), 1500, top)):
        expected = model.receive_all(port, packets)
        answers = pipeline.process(port, frame(port, *packets))
        assert [(to, read(out)) for to, out in answers] == expected, (step, port, packets)
    assert counted(pipeline) == dict(model.counts)
    assert {"new", "complete", "duplicate", "stale", "refused", "taken_apart"} <= set(model.counts)


SHAPES = [[3], [1, [2]], [[2], [2]], [[1, [2]], [[1], [1]]], [[1]]]


@pytest.mark.long(but=["[3]-0-0.0", "[[1]]-1-0.15", "[[2], [2]]-1-0.15", "[1, [2]]-0-0.0"])
@pytest.mark.parametrize("seed, mishap", [(0, 0.0), (1, 0.15), (2, 0.15), (3, 0.15)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_columns_are_walked_exactly_whatever_is_lost_repeated_or_late(
    omnireduce: Path, shape: list, seed: int, mishap: float
) -> None:
    load = lambda: Pipeline.load(omnireduce)  # noqa: E731
    tree = planted(load, shape, at_node)
    chance = random.Random(seed)
    workers = []
    for rank in range(len(tree.places)):
        own = {b: values(rank, b) for b in range(40) if chance.random() < 0.3}
        workers.append(Walker(own, SLOTS))
    tree.run(workers, chance, mishap)
    union = sorted({block for worker in workers for block in worker.own})
    expected = {
        block: total(*(worker.own[block] for worker in workers if block in worker.own))
        for block in union
    }
    for worker in workers:
        assert worker.sums == expected
    if not mishap:
        switches_below = str(shape).count("[") - 1
        assert tree.up == switches_below * (SLOTS + len(union))


def test_a_leaf_hands_up_what_its_children_have_and_down_what_comes(leaf: Pipeline) -> None:
    for port in (1, 2):
        assert send(leaf, port, bare(next=8)) == {}
    assert send(leaf, 3, bare(next=4, exponent=9)) == {UPLINK: bare(next=4, exponent=9)}
    assert send(leaf, 2, bare(next=8)) == {}  # the first child alone asks again
    assert send(leaf, 1, bare(next=8)) == {UPLINK: bare(next=4, exponent=9)}
    final = replace(full(5, next=2, exponent=1), kind=INT32 | RESULT)
    assert send(leaf, UPLINK, final) == dict.fromkeys(PORTS, final)
    assert send(leaf, UPLINK, final) == {}
    assert send(leaf, 2, bare(next=8)) == {2: final}


def test_a_final_sum_nobody_asked_for_is_dropped(leaf: Pipeline) -> None:
    final = replace(full(5, block=4), kind=INT32 | RESULT)
    assert send(leaf, UPLINK, final) == {}
    for port in PORTS:
        send(leaf, port, bare(block=4))
    others = (
        replace(final, block=8),
        replace(final, tag=3),
        replace(final, kind=SCALED | RESULT),
    )
    for other in others:
        assert send(leaf, UPLINK, other) == {}
    assert send(leaf, UPLINK, replace(final, kind=INT32)) == send(leaf, 1, final) == {}
    assert counted(leaf) == {"new": 3, "complete": 1, "final_unneeded": 4, "refused": 2}
    assert len(send(leaf, UPLINK, final)) == 3
