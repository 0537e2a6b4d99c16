"""p4/atp.p4 and p4/esa.p4 against docs/pooling.md: rules by name, random schedules against a model,
and what depends on time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from frames import opened
from pooling_model import (
    COLLISION,
    CONGESTED,
    EVICTED,
    FLOAT32,
    INT32,
    MISMATCH,
    OVERFLOW,
    RESEND,
    RESULT,
    SCALED,
    Packet,
    frame,
    parse,
)
from rules.atp import LANES, MIDDLE, NO_JOB, ROOT, SLOTS, UPLINK, at_random, jobs_at
from rules.atp import RULES as ATP
from rules.esa import RULES as ESA
from tables import Entry, Setup, write_entries
from test_packet_checks import rewritten

from p4native.switch import Pipeline

JOB, OTHER, SERVER, OTHERS_SERVER = 3, 5, 7, 8
ABANDONED_US, MARK_US = 500, 300
Send = Callable[..., dict[int, Packet]]


@pytest.fixture(scope="session")
def products(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pooling")
    times = {"ABANDONED_US": ABANDONED_US, "MARK_US": MARK_US}
    timed = [replace(rules, defines={**rules.defines, **times}) for rules in (ATP, ESA)]
    return {rules.program: rules.compiled(folder) for rules in timed}


@pytest.fixture(params=["atp", "esa"])
def both(request: pytest.FixtureRequest, products: dict[str, Path]) -> Pipeline:
    made = Pipeline.load(products[request.param])
    write_entries(made, jobs_at(ROOT, request.param == "esa"))
    return made


@pytest.fixture
def atp(products: dict[str, Path]) -> Pipeline:
    made = Pipeline.load(products["atp"])
    write_entries(made, jobs_at(ROOT, preempts=False))
    return made


@pytest.fixture
def esa(products: dict[str, Path]) -> Pipeline:
    made = Pipeline.load(products["esa"])
    write_entries(made, jobs_at(ROOT, preempts=True))
    return made


@pytest.fixture
def middle(products: dict[str, Path]) -> Pipeline:
    made = Pipeline.load(products["atp"])
    write_entries(made, jobs_at(MIDDLE, preempts=False))
    return made


def send(pipeline: Pipeline, port: int, packet: Packet, now_us: int = 0) -> dict[int, Packet]:
    """By port, what leaves."""
    out = pipeline.process(port, frame(port, packet), now_us)
    return {to: parse(opened(got)[1]) for to, got in out}


def values(rank: int, tag: int = 0) -> tuple[int, ...]:
    return tuple((0x9E3779B9 * (i + 1) * (rank + 3) + tag * 7919) % 2**32 for i in range(LANES))


def total(*ranks: int, tag: int = 0) -> tuple[int, ...]:
    return tuple(sum(v) % 2**32 for v in zip(*(values(r, tag) for r in ranks), strict=True))


def part(rank: int, job: int = JOB, tag: int = 0, **fields: int) -> Packet:
    return replace(Packet(job, 1, tag, INT32, values(rank, tag), members=1 << rank), **fields)


def result(members: int = 7, **fields: int) -> Packet:
    return part(0, kind=INT32 | RESULT, members=members, **fields)


def counter(pipeline: Pipeline, name: str, index: int = 1) -> int:
    """index: 1 that of JOB, 2 that of OTHER."""
    (full,) = (c for c in pipeline.program.counters if c.endswith(f".{name}"))
    return pipeline.counters.read(full, index)[0]


def test_a_sum_goes_to_the_server_when_all_are_in(both: Pipeline) -> None:
    for rank in (0, 2):
        assert send(both, rank + 1, part(rank)) == {}
    expected = part(1, members=7, values=total(0, 1, 2))
    assert send(both, 2, part(1)) == {SERVER: expected}
    assert counter(both, "contribution_new") == 3 and counter(both, "chunk_complete") == 1


def test_what_it_says_of_its_members_is_not_believed(both: Pipeline) -> None:
    send(both, 1, part(0, members=7, flags=COLLISION | CONGESTED))
    assert send(both, 2, part(1, members=5)) == {}
    (out,) = send(both, 3, part(2, members=0)).values()
    assert (out.members, out.values, out.flags) == (7, total(0, 1, 2), 0)
    floats = part(0, kind=FLOAT32, members=6, flags=EVICTED)
    assert send(both, 1, floats) == {SERVER: replace(floats, members=1, flags=0)}


def test_a_copy_changes_nothing(both: Pipeline) -> None:
    send(both, 1, part(0))
    assert send(both, 1, part(0)) == {}
    send(both, 2, part(1))
    assert send(both, 3, part(2))[SERVER].values == total(0, 1, 2)
    assert counter(both, "contribution_duplicate") == 1


@pytest.mark.parametrize("who", [{"job": OTHER}, {"tag": 1}, {"session": 2**32 - 1}, {"digest": 8}])
def test_another_chunk_collides_and_goes_to_its_server_alone(both: Pipeline, who: dict) -> None:
    send(both, 1, part(0))
    other = part(1, **who)
    server = OTHERS_SERVER if "job" in who else SERVER
    assert send(both, 2, other) == {server: replace(other, flags=COLLISION)}
    send(both, 2, part(1))
    assert send(both, 3, part(2))[SERVER].values == total(0, 1, 2)


def test_the_answer_frees_the_slot_and_goes_to_all(atp: Pipeline) -> None:
    for rank in range(3):
        send(atp, rank + 1, part(rank))
    assert SERVER in send(atp, 1, part(0, tag=4))  # a sum that is whole keeps its slot
    assert send(atp, SERVER, result()) == dict.fromkeys((1, 2, 3), result())
    assert send(atp, 1, part(0, tag=4)) == {}


@pytest.mark.parametrize("other", [{"tag": 1}, {"session": 2}, {"digest": 8}, {"job": OTHER}])
def test_an_answer_frees_no_other_chunks_slot(both: Pipeline, other: dict) -> None:
    send(both, 1, part(0))
    send(both, OTHERS_SERVER if "job" in other else SERVER, result(**other))
    for rank in (1, 2):
        last = send(both, rank + 1, part(rank))
    assert last[SERVER].members == 7


def test_an_answer_for_one_goes_to_one(both: Pipeline) -> None:
    assert send(both, SERVER, result(members=2)) == {2: result(members=2)}
    assert set(send(both, SERVER, result(members=3))) == {1, 2, 3}
    assert (counter(both, "result_to_one"), counter(both, "result_to_all")) == (1, 1)


def test_what_is_sent_again_claims_no_slot(both: Pipeline) -> None:
    again = part(0, flags=RESEND, attempt=1)
    assert send(both, 1, again) == {SERVER: again}
    assert send(both, 1, part(0, job=OTHER)) == {}
    assert counter(both, "contribution_passed") == 1


def test_what_is_sent_again_takes_the_slots_sum_along_once(both: Pipeline) -> None:
    for rank in (0, 1):
        send(both, rank + 1, part(rank))
    out = send(both, 1, part(0, flags=RESEND))[SERVER]
    assert (out.members, out.values, out.flags) == (3, total(0, 1), RESEND)
    assert send(both, 2, part(1, flags=RESEND))[SERVER].values == values(1)
    late = part(2)
    assert send(both, 3, late) == {SERVER: late}
    assert counter(both, "slot_released") == 1 and counter(both, "contribution_passed") == 2


def test_who_has_not_been_there_brings_its_own_values_along(both: Pipeline) -> None:
    send(both, 1, part(0, flags=OVERFLOW))
    out = send(both, 3, part(2, flags=RESEND))[SERVER]
    assert (out.members, out.values, out.flags) == (5, total(0, 2), RESEND | OVERFLOW)


def test_a_spent_slot_is_free_for_others(both: Pipeline) -> None:
    send(both, 1, part(0))
    send(both, 1, part(0, flags=RESEND))
    for rank in range(3):
        out = send(both, rank + 1, part(rank, job=OTHER))
    assert out[OTHERS_SERVER].values == total(0, 1, 2)


def test_who_does_not_fit_the_scale_is_told_of(both: Pipeline) -> None:
    send(both, 1, part(0, kind=SCALED, flags=OVERFLOW))
    send(both, 2, part(1, kind=SCALED))
    assert send(both, 3, part(2, kind=SCALED))[SERVER].flags == OVERFLOW


def test_overflow_of_an_older_chunk_is_forgotten(both: Pipeline) -> None:
    send(both, 1, part(0, flags=OVERFLOW))
    for rank in range(3):
        out = send(both, rank + 1, part(rank, tag=4, oldest=1))
    assert out[SERVER].flags == 0


def test_floats_are_never_summed(both: Pipeline) -> None:
    for rank in range(3):
        floats = part(rank, kind=FLOAT32)
        assert send(both, rank + 1, floats) == {SERVER: floats}


DONE = {
    "oldest": ({}, {"tag": 4, "oldest": 1}, True),
    "still wanted": ({"tag": 1}, {"tag": 4, "oldest": 1}, False),
    "session": ({}, {"session": 2}, True),
    "older session": ({"session": 2}, {"session": 1, "oldest": 9}, False),
    "another job": ({}, {"job": OTHER, "oldest": 9}, False),
    "another job's session": ({}, {"job": OTHER, "session": 2}, False),
    "tags go around": ({"tag": 2**32 - 1}, {"tag": 0, "oldest": 0}, True),
}


@pytest.mark.parametrize("what", DONE)
def test_a_slot_is_free_when_its_chunk_is_done(both: Pipeline, what: str) -> None:
    there, comes, is_free = DONE[what]
    send(both, 1, part(0, **there))
    assert (send(both, 2, part(1, **comes)) == {}) == is_free


@pytest.mark.parametrize("after_us, is_free", [(ABANDONED_US, False), (ABANDONED_US + 1, True)])
def test_a_slot_that_nobody_touches_is_free(both: Pipeline, after_us: int, is_free: bool) -> None:
    send(both, 1, part(0), 100)
    send(both, 2, part(1), 200)
    assert (send(both, 1, part(0, job=OTHER), 200 + after_us) == {}) == is_free


def test_collisions_do_not_touch(both: Pipeline) -> None:
    send(both, 1, part(0), 100)
    send(both, 1, part(0, job=OTHER), 100 + ABANDONED_US)
    assert send(both, 2, part(1, job=OTHER), 101 + ABANDONED_US) == {}


# Of a switch between others.


def test_a_switch_below_brings_members(middle: Pipeline) -> None:
    assert send(middle, 2, part(1, members=6)) == {}
    assert send(middle, 1, part(0)) == {UPLINK: part(0, members=7, values=total(0, 1))}
    final = result()
    assert send(middle, UPLINK, final) == {1: final, 2: final}
    assert send(middle, UPLINK, result(members=4)) == {2: result(members=4)}


@pytest.mark.parametrize("members", [0, 1, 3, 14])
def test_members_of_others_are_refused(middle: Pipeline, members: int) -> None:
    assert send(middle, 2, part(1, members=members)) == {}
    assert counter(middle, "contribution_refused") == 1


def test_parts_that_overlap_are_not_added(middle: Pipeline) -> None:
    send(middle, 2, part(1, members=2))
    overlapping = part(2, members=6)
    assert send(middle, 2, overlapping) == {UPLINK: replace(overlapping, flags=COLLISION)}
    again = replace(overlapping, flags=RESEND)
    assert send(middle, 2, again) == {UPLINK: again}
    assert send(middle, 1, part(0)) == {}


def test_what_was_evicted_below_claims_nothing(middle: Pipeline) -> None:
    evicted = part(1, members=2, flags=EVICTED)
    assert send(middle, 2, evicted) == {UPLINK: evicted}
    send(middle, 2, part(2, members=4))
    out = send(middle, 2, evicted)[UPLINK]
    assert (out.members, out.values) == (6, total(1, 2))


# Preemption.


def test_a_higher_priority_takes_the_slot_over(esa: Pipeline) -> None:
    send(esa, 1, part(0, kind=SCALED, flags=OVERFLOW, attempt=1, tag=2, digest=9))
    out = send(esa, 2, part(1, job=OTHER, priority=1, session=4))
    gone = part(0, kind=SCALED, tag=2, digest=9, oldest=2, priority=1, flags=EVICTED | OVERFLOW)
    assert out == {SERVER: gone}
    assert counter(esa, "slot_evicted", 1) == counter(esa, "contribution_new", 2) == 1
    for rank in (0, 2):
        out = send(esa, rank + 1, part(rank, job=OTHER, session=4))
    assert out[OTHERS_SERVER].values == total(0, 1, 2)


@pytest.mark.parametrize("resident, comes", [(0, 0), (3, 3), (255, 254)])
def test_the_same_priority_takes_nothing(esa: Pipeline, resident: int, comes: int) -> None:
    send(esa, 1, part(0, priority=resident))
    assert set(send(esa, 1, part(0, job=OTHER, priority=comes))) == {OTHERS_SERVER}
    assert counter(esa, "contribution_collided", 2) == 1


def test_whoever_keeps_coming_gets_the_slot(esa: Pipeline) -> None:
    send(esa, 1, part(0, priority=3))
    for tag in range(2):
        assert set(send(esa, 1, part(0, job=OTHER, tag=tag, priority=2))) == {OTHERS_SERVER}
    assert set(send(esa, 1, part(0, job=OTHER, tag=3, priority=2))) == {SERVER}


def test_its_own_packets_do_not_lower_a_priority(esa: Pipeline) -> None:
    send(esa, 1, part(0, priority=3))
    for rank in (1, 1):
        send(esa, rank + 1, part(rank, priority=3))
    assert set(send(esa, 1, part(0, job=OTHER, priority=3))) == {OTHERS_SERVER}


def test_what_is_sent_again_takes_no_slot_over(esa: Pipeline) -> None:
    send(esa, 1, part(0))
    again = part(0, job=OTHER, priority=9, flags=RESEND)
    assert send(esa, 1, again) == {OTHERS_SERVER: again}
    for rank in (1, 2):
        out = send(esa, rank + 1, part(rank))
    assert out[SERVER].members == 7


def test_a_whole_sum_leaves_its_slot_at_once(esa: Pipeline) -> None:
    for rank in range(3):
        send(esa, rank + 1, part(rank))
    assert send(esa, 1, part(0, job=OTHER)) == {}


def test_what_a_job_left_behind_is_dropped(products: dict[str, Path]) -> None:
    """It has ended since, and the switch has no entries of it."""
    pipeline = Pipeline.load(products["esa"])
    whole = jobs_at(ROOT, preempts=True)
    gone = [e for e in whole.entries if e.table == "evicted" and e.key["aggregation.job"] == JOB]
    write_entries(pipeline, Setup(whole.groups, [e for e in whole.entries if e not in gone]))
    send(pipeline, 1, part(0))
    assert send(pipeline, 1, part(0, job=OTHER, priority=1)) == {}
    assert counter(pipeline, "slot_evicted", NO_JOB) == 1


# Refused, marked.

REFUSED = {
    "version": {"version": 2},
    "zero": {"zero": 1},
    "no session": {"session": 0},
    "slot": {"slot": SLOTS},
    "mismatch": {"kind": MISMATCH, "values": ()},
    "unknown kind": {"kind": 0x54},
    "no values": {"values": ()},
    "a value more": {"values": (1,) * (LANES + 1)},
    "a result": {"kind": INT32 | RESULT},
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_worker_sends_is_refused(both: Pipeline, what: str) -> None:
    assert send(both, 1, replace(part(0), **REFUSED[what])) == {}
    assert counter(both, "contribution_refused") == 1
    for rank in (1, 2):
        assert send(both, rank + 1, part(rank)) == {}


@pytest.mark.parametrize("port", [4, SERVER, OTHERS_SERVER])
def test_who_is_no_worker_contributes_nothing(both: Pipeline, port: int) -> None:
    assert send(both, port, part(0)) == {}
    assert counter(both, "contribution_refused") == 1


@pytest.mark.parametrize("port", [1, 4, OTHERS_SERVER])
def test_who_is_no_server_answers_nothing(both: Pipeline, port: int) -> None:
    assert send(both, port, result()) == {}


def test_every_byte_is_covered_by_the_checksum(both: Pipeline) -> None:
    right = frame(1, part(0))
    for at in range(42, len(right)):
        wrong = bytearray(right)
        wrong[at] ^= 4
        assert both.process(1, bytes(wrong)) == []
    assert counter(both, "contribution_new") == 0
    of_no_job = counter(both, "contribution_refused", NO_JOB)
    assert of_no_job == 2  # the bytes that name the job
    assert counter(both, "contribution_refused") == len(right) - 42 - of_no_job


def test_one_length_is_right(both: Pipeline) -> None:
    bare = frame(1, replace(part(0), values=()))
    for extra in range(4 * LANES + 24):
        assert both.process(1, rewritten(bare, extra)) == []
        assert counter(both, "contribution_new") == (extra >= 4 * LANES)
    assert both.process(2, rewritten(frame(2, part(1)), udp_extra=1)) == []
    assert counter(both, "contribution_new") == 1


def test_packets_that_would_wait_are_marked(both: Pipeline) -> None:
    """100 us a frame: the fifth waits 400 us."""
    length = len(frame(1, part(0)))
    ns = 100_000 // length + 1
    write_entries(
        both, Setup(entries=[Entry("links", {"egress_port": SERVER}, "set_link_rate", {"ns": ns})])
    )
    floats = part(0, kind=FLOAT32)
    flags = [send(both, 1, floats, 1000)[SERVER].flags for _ in range(5)]
    assert flags == [0, 0, 0, CONGESTED, CONGESTED]
    assert send(both, 1, floats, 5000)[SERVER].flags == 0


@pytest.mark.long(but=["atp-root"])
@pytest.mark.parametrize("places", [ROOT, MIDDLE], ids=["root", "middle"])
@pytest.mark.parametrize("program", ["atp", "esa"])
def test_random_schedules_go_as_the_model_says(
    products: dict[str, Path], program: str, places: list
) -> None:
    for seed in range(12):
        pipeline = Pipeline.load(products[program])
        said = at_random(random.Random(seed), places, program == "esa")
        write_entries(pipeline, said.setup)
        for step in said.steps:
            assert sorted(pipeline.process(step.port, step.frame)) == sorted(step.out)
        found = {name: _read(pipeline, name) for name in said.counters}
        assert found == said.counters


def _read(pipeline: Pipeline, name: str) -> int:
    what, _, index = name.partition("(")
    return counter(pipeline, what, int(index[:-1]))
