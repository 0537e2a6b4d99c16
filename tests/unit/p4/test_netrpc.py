"""p4/netrpc.p4 against systems/netrpc/README.md: rules by name, random schedules against a model,
and frames of outsiders."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from frames import worker_address
from netrpc_model import (
    ARRAY,
    MAP,
    NO_PLACE,
    NOTHING,
    PAIRS,
    Packet,
    frame,
    read,
)
from netrpc_schedules import (
    ACQUIRE,
    ADD,
    AGREE,
    CELLS,
    CLEAR,
    COUNTERS,
    DEFINES,
    GET,
    INDEX,
    JOB,
    LANES,
    OPEN,
    PORTS,
    REDUCE,
    RELEASE,
    SLOTS,
    TAKE,
    model,
    pairs,
    random_packet,
    setup,
)
from tables import write_entries
from test_packet_checks import rewritten

from agglab.systems.netrpc.system import NetRpc
from agglab.testbed.scenario import resolve
from agglab.testbed.schema.network_sections import Switch as SwitchKeys
from agglab.testbed.schema.scenario import JobSection, Scenario
from p4native.switch import Exact, Pipeline

ROOT = Path(__file__).resolve().parents[3]
NOW_US = 1000
CALLS = "NetrpcIngress.calls."


@pytest.fixture(scope="session")
def netrpc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    json = tmp_path_factory.mktemp("netrpc") / "netrpc.json"
    command = [sys.executable, "-m", "p4native.compiler", "p4/netrpc.p4", "-o", str(json)]
    sizes = [f"-D{name}={value}" for name, value in DEFINES.items()]
    subprocess.run([*command, *sizes], cwd=ROOT, check=True)
    return json


@pytest.fixture
def pipeline(netrpc: Path) -> Pipeline:
    made = Pipeline.load(netrpc)
    write_entries(made, setup())
    return made


def counted(pipeline: Pipeline) -> dict[str, int]:
    found = {w: pipeline.counters.read(CALLS + name, INDEX)[0] for w, name in COUNTERS.items()}
    found["refused"] += pipeline.counters.read(CALLS + "call_refused", 16)[0]
    return {what: count for what, count in found.items() if count}


def send(pipeline: Pipeline, port: int, packet: Packet, now_us: int = NOW_US) -> dict[int, Packet]:
    return {to: read(to, out) for to, out in pipeline.process(port, frame(port, packet), now_us)}


def values(rank: int) -> tuple[int, ...]:
    return tuple((0x9E3779B9 * (i + 1) * (rank + 3)) % 2**32 for i in range(LANES))


def total(*parts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(v) % 2**32 for v in zip(*parts, strict=True))


def array(method: int, rank: int, sequence: int, epoch: int = NOW_US | 1, position: int = 0):
    return Packet(JOB, position, sequence, method, epoch, values=values(rank))


def touch(method: int, used: dict[int, tuple[int, int]], sequence: int, position: int = 3):
    return Packet(JOB, position, sequence, method, NOW_US | 1, pairs=pairs(used))


def opened(pipeline: Pipeline, now_us: int = NOW_US, sequence: int = 1) -> dict[int, Packet]:
    for rank, port in enumerate(PORTS):
        answers = send(pipeline, port, array(OPEN, rank, sequence, epoch=7), now_us)
    return answers


def test_an_open_tells_all_the_epoch_when_all_have_called(pipeline: Pipeline) -> None:
    answers = opened(pipeline)
    expected = total(*(values(rank) for rank in range(3)))
    assert answers == dict.fromkeys(
        PORTS, Packet(JOB, 0, 1, OPEN, NOW_US | 1, values=expected, result=True)
    )
    assert counted(pipeline) == {"new": 3, "complete": 1}


def test_calls_of_no_epoch_and_of_an_older_one_are_lost(pipeline: Pipeline) -> None:
    """Also of one that nobody has begun: epoch 0 is none."""
    assert send(pipeline, 1, array(REDUCE, 0, 1, epoch=0)) == {}
    opened(pipeline)
    opened(pipeline, NOW_US + 10, sequence=2)
    assert send(pipeline, 1, array(REDUCE, 0, 3)) == {}
    assert counted(pipeline)["lost"] == 2
    assert send(pipeline, 1, array(REDUCE, 0, 3, epoch=NOW_US + 10 | 1)) == {}
    assert counted(pipeline)["new"] == 7


def test_a_gather_is_answered_to_all_and_again_to_who_asks_again(pipeline: Pipeline) -> None:
    opened(pipeline)
    for rank, port in enumerate(PORTS):
        answers = send(pipeline, port, replace(array(REDUCE, rank, 2), word=9 * rank))
    assert answers[1].values == total(*(values(rank) for rank in range(3)))
    assert {answer.word for answer in answers.values()} == {18}
    again = replace(array(REDUCE, 1, 2), attempt=1)
    assert send(pipeline, 2, again) == {2: replace(answers[2], attempt=1)}
    assert counted(pipeline)["duplicate"] == counted(pipeline)["single"] == 1


def test_a_repeated_call_of_an_open_gather_adds_nothing(pipeline: Pipeline) -> None:
    opened(pipeline)
    for _ in range(3):
        assert send(pipeline, 1, array(REDUCE, 0, 2)) == {}
    send(pipeline, 2, array(REDUCE, 1, 2))
    answers = send(pipeline, 3, array(REDUCE, 2, 2))
    assert answers[3].values == total(*(values(rank) for rank in range(3)))


def test_a_gathers_cells_are_cleared_by_its_next_turn(pipeline: Pipeline) -> None:
    opened(pipeline)
    for sequence in range(2, 6):
        for rank, port in enumerate(PORTS):
            answers = send(pipeline, port, array(REDUCE, rank, sequence))
        assert answers[1].values == total(*(values(rank) for rank in range(3)))


def test_another_method_in_the_same_turn_is_refused(pipeline: Pipeline) -> None:
    opened(pipeline)
    send(pipeline, 1, array(REDUCE, 0, 2))
    assert send(pipeline, 2, Packet(JOB, 0, 2, AGREE, NOW_US | 1)) == {}
    assert counted(pipeline)["refused"] == 1


def test_a_call_of_an_older_gather_does_not_join_a_later_one(pipeline: Pipeline) -> None:
    """The sequence numbers of a caller that has not used the position yet do not tell."""
    opened(pipeline)
    for rank, port in ((0, 1), (1, 2)):
        assert send(pipeline, port, array(REDUCE, rank, 7, position=1)) == {}
    for sequence in (5, 6):
        assert send(pipeline, 3, array(REDUCE, 2, sequence, position=1)) == {}
    assert counted(pipeline)["stale"] == 1
    answers = send(pipeline, 3, array(REDUCE, 2, 7, position=1))
    assert answers[1].values == total(*(values(rank) for rank in range(3)))


def test_what_a_flip_bit_alone_would_take_for_new_is_refused(pipeline: Pipeline) -> None:
    """A copy of a call that is two uses of its position late has the flip bit of a new one."""
    opened(pipeline)
    used = {0: (1, 5)}
    for sequence in (1, 2):
        send(pipeline, 1, touch(ADD, used, sequence))
    assert send(pipeline, 1, touch(ADD, used, 1)) == {}
    assert send(pipeline, 1, touch(GET, used, 3))[1].pairs == pairs({0: (1, 10)})
    assert counted(pipeline)["stale"] == 1
    assert send(pipeline, 1, touch(ADD, used, 5)) == {}, "it has not had the answer to 4"
    assert counted(pipeline)["refused"] == 1
    assert send(pipeline, 1, touch(ADD, used, 1 << 20 | 1))[1].result, "another session"


def test_a_repeated_add_is_answered_and_adds_nothing(pipeline: Pipeline) -> None:
    opened(pipeline)
    used = {0: (1, 5), 31: (7, 2**32 - 1)}
    for _ in range(3):
        answer = send(pipeline, 1, touch(ADD, used, 1))
        assert answer == {1: Packet(JOB, 3, 1, ADD, NOW_US | 1, result=True)}
    send(pipeline, 2, touch(ADD, used, 1))
    got = pairs({0: (1, 10), 31: (7, 2**32 - 2)})
    assert send(pipeline, 3, touch(GET, used, 1))[3].pairs == got


def test_what_a_map_had_in_an_older_epoch_is_0(pipeline: Pipeline) -> None:
    opened(pipeline)
    send(pipeline, 1, touch(ADD, {4: (2, 5)}, 1))
    opened(pipeline, NOW_US + 50, sequence=2)
    get = replace(touch(GET, {4: (2, 0)}, 2), epoch=NOW_US + 50 | 1)
    assert send(pipeline, 1, get)[1].pairs == pairs({4: (2, 0)})


def test_a_lock_that_was_held_in_an_older_epoch_is_free(pipeline: Pipeline) -> None:
    opened(pipeline)
    lock = {0: (5, 0)}
    assert send(pipeline, 1, touch(ACQUIRE, lock, 1))[1].count == 1
    opened(pipeline, NOW_US + 50, sequence=2)
    again = replace(touch(ACQUIRE, lock, 1), epoch=NOW_US + 50 | 1)
    assert send(pipeline, 2, again)[2].count == 1


def test_values_are_cleared_once(pipeline: Pipeline) -> None:
    """A clear that is repeated leaves what was added after it."""
    opened(pipeline)
    used = {3: (0, 4)}
    send(pipeline, 1, touch(ADD, used, 1))
    clear = touch(CLEAR, used, 1)
    send(pipeline, 2, clear)
    send(pipeline, 1, touch(ADD, used, 2))
    assert send(pipeline, 2, clear)[2].result
    assert send(pipeline, 3, touch(GET, used, 1))[3].pairs == pairs(used)


def test_who_asks_again_for_what_was_cleared_is_told_and_clears_nothing(pipeline: Pipeline) -> None:
    opened(pipeline)
    used = {3: (0, 4)}
    send(pipeline, 1, touch(ADD, used, 1))
    take = touch(TAKE, used, 1)
    send(pipeline, 2, take)
    send(pipeline, 1, touch(ADD, used, 2))
    assert send(pipeline, 2, take)[2].pairs == pairs(used)
    assert send(pipeline, 3, touch(GET, used, 1))[3].pairs == pairs(used)


def test_a_lock_has_one_holder_and_a_repeated_release_takes_it_from_nobody(
    pipeline: Pipeline,
) -> None:
    opened(pipeline)
    lock = {0: (5, 0)}
    assert send(pipeline, 1, touch(ACQUIRE, lock, 1))[1].count == 1
    assert send(pipeline, 2, touch(ACQUIRE, lock, 1))[2].count == 2
    assert send(pipeline, 1, touch(ACQUIRE, lock, 1))[1].count == 1, "as it was told before"
    release = touch(RELEASE, lock, 2)
    assert send(pipeline, 1, release)[1].count == 0
    assert send(pipeline, 2, touch(ACQUIRE, lock, 2))[2].count == 1
    assert send(pipeline, 1, release)[1].count == 0
    assert send(pipeline, 3, touch(ACQUIRE, lock, 1))[3].count == 2, "2 still holds it"


def test_a_counter_stops_at_its_largest(pipeline: Pipeline) -> None:
    opened(pipeline)
    name, at = CALLS + "tallies", CELLS + 5
    pipeline.registers.write(name, at, (NOW_US | 1) << 32 | 0xFFFE)
    for sequence, count in ((1, 0xFFFF), (2, 0xFFFF)):
        assert send(pipeline, 1, touch(ACQUIRE, {0: (5, 0)}, sequence))[1].count == count


def test_the_slot_behind_a_jobs_last_one_is_not_its_own(netrpc: Path) -> None:
    pipeline = Pipeline.load(netrpc)
    write_entries(pipeline, setup(first_slot=0))
    for position, found in ((SLOTS - 2, {"new": 1}), (SLOTS - 1, {"new": 1, "refused": 1})):
        assert send(pipeline, 1, array(OPEN, 0, 1, epoch=7, position=position)) == {}
        assert counted(pipeline) == found


PLACES = [{0: (CELLS, 1)}, {31: (CELLS, 1)}, {5: (0, 1), 6: (NO_PLACE - 1, 1)}]


@pytest.mark.parametrize("used", PLACES, ids=str)
def test_places_beyond_the_jobs_own_are_refused(
    pipeline: Pipeline, used: dict[int, tuple[int, int]]
) -> None:
    opened(pipeline)
    assert send(pipeline, 1, touch(ADD, used, 1)) == {}
    assert send(pipeline, 1, touch(ACQUIRE, {}, 1)) == {}, "no place is no counter"
    assert counted(pipeline)["refused"] == 2


LENGTHS = {
    "array": (array(OPEN, 0, 1), 4 * LANES),
    "map": (touch(ADD, {}, 1), 6 * PAIRS),
    "nothing": (Packet(JOB, 0, 2, AGREE, NOW_US | 1), 0),
}


@pytest.mark.parametrize("kind", LENGTHS)
def test_every_kind_has_one_length(pipeline: Pipeline, kind: str) -> None:
    packet, right = LENGTHS[kind]
    if kind != "array":
        opened(pipeline)
    before = counted(pipeline)
    headers = frame(1, packet)[:62]
    for extra in (*range(right), right + 1, right + 4):
        assert pipeline.process(1, rewritten(headers, extra), NOW_US) == []
    assert counted(pipeline) == {**before, "refused": right + 2}


def test_other_kinds_are_refused(pipeline: Pipeline) -> None:
    foreign = [k for k in range(256) if k not in (NOTHING, ARRAY, MAP)]
    for kind in foreign:
        changed = bytearray(frame(1, array(OPEN, 0, 1))[:62])
        changed[43] = kind
        assert pipeline.process(1, rewritten(bytes(changed), 4 * LANES), NOW_US) == []
    assert counted(pipeline) == {"refused": len(foreign)}


def test_a_wrong_udp_checksum_is_refused(pipeline: Pipeline) -> None:
    """It covers the call's own header, and the pairs."""
    opened(pipeline)
    before = counted(pipeline)
    places = [*range(54, 62), 62, 65]
    for packet in (array(REDUCE, 0, 2), touch(ADD, {0: (1, 1)}, 1)):
        good = frame(1, packet)
        for at in (*places, len(good) - 1):
            bad = bytearray(good)
            bad[at] ^= 1
            assert pipeline.process(1, bytes(bad), NOW_US) == []
    assert counted(pipeline) == {**before, "refused": 22}


@pytest.mark.parametrize("udp_extra", [-1, 1, 400])
def test_a_udp_length_that_differs_from_the_packets_is_refused(
    pipeline: Pipeline, udp_extra: int
) -> None:
    call = frame(1, array(OPEN, 0, 1, epoch=7))
    assert pipeline.process(1, rewritten(call, udp_extra=udp_extra), NOW_US) == []
    assert counted(pipeline) == {"refused": 1}
    assert pipeline.process(1, rewritten(call), NOW_US) == []
    assert counted(pipeline) == {"refused": 1, "new": 1}


def test_who_calls_is_told_by_port_and_address(pipeline: Pipeline) -> None:
    for port in PORTS:
        other = frame(1 + port % 3, array(OPEN, 0, 1))
        assert pipeline.process(port, other, NOW_US) == []
    assert counted(pipeline) == {"refused": 3}


@pytest.mark.long(but=["0", "3"])
@pytest.mark.parametrize("seed", range(6))
def test_random_schedules_do_what_the_model_does(pipeline: Pipeline, seed: int) -> None:
    chance, switch = random.Random(seed), model()
    answered = 0
    for step in range(1500):
        port, packet = random_packet(chance, switch)
        now_us = NOW_US + 3 * step
        expected = switch.receive(port, packet, now_us)
        got = send(pipeline, port, packet, now_us)
        assert got == ({} if expected is None else dict.fromkeys(*expected)), (step, port, packet)
        answered += bool(got)
    assert counted(pipeline) == {k: v for k, v in switch.counts.items() if v}
    assert answered > 400 and set(switch.counts) == set(COUNTERS)


def test_every_kind_of_attack_is_counted_by_its_counter_and_none_is_answered(
    pipeline: Pipeline,
) -> None:
    """10,000 frames from port 4, which leads to a host of no job, change no register."""
    sources, set_owner = (f"NetrpcIngress.forwarding.{n}" for n in ("sources", "set_owner_address"))
    owner = int.from_bytes(worker_address(4), "big")
    pipeline.tables.add(sources, [Exact(4)], set_owner, [owner])
    pipeline.replication.set_multicast_group(1, [(port, 0) for port in (*PORTS, 4)])
    opened(pipeline)
    switch, victim = SwitchKeys(lanes=LANES, slots=SLOTS), JobSection(name="a", workers=("h[123]",))
    scenario = Scenario(name="attacked", system="netrpc", switch=switch, jobs=(victim,))
    kinds, counters = NetRpc.attack_kinds, pipeline.program.counters
    refusals = ("refused", "forged", "malformed", "forwarded", "unroutable")
    places = {
        k: next(c for c in counters if c.endswith(f".{NetRpc.counters[k].name}")) for k in refusals
    }

    def counts() -> dict[str, int]:
        return {
            k: sum(pipeline.counters.read(name, i)[0] for i in range(counters[name].size))
            for k, name in places.items()
        }

    def state() -> list[int]:
        names = (*("epochs", "turns", "arrivals", "words", "sum_tail"), "map_a0", "tallies")
        registers = pipeline.program.registers
        return [
            pipeline.registers.read(CALLS + name, i)
            for name in names
            for i in range(registers[CALLS + name].size)
        ]

    before, seen, found = state(), set(), counts()
    for kind, attack in islice(NetRpc().attack("7", resolve(scenario), "h4"), 10_000):
        out, counted_by = pipeline.process(4, attack, NOW_US), kinds[kind].counted
        found[counted_by] += 1
        assert all(copy == attack for _, copy in out), kind
        assert bool(out) == (counted_by == "forwarded"), kind
        seen.add(kind)
    assert counts() == found and state() == before
    assert seen == set(kinds)
