"""p4/switchml_deadline.p4 closes chunks without everybody: docs/partial-sums.md."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from frames import AGGREGATION, from_aggregator, opened, to_aggregator, worker
from tables import Slots, summing, write_entries

from p4native.switch import Pipeline

sys.path.append(str(Path(__file__).parents[1] / "hosts"))

from deadline_model import OPENING, DeadlineModel, Packet

ROOT = Path(__file__).resolve().parents[3]
COMPILE = [sys.executable, "-m", "p4native.compiler", "p4/switchml_deadline.p4"]
JOB, INDEX, FIRST_SLOT, SLOTS, LANES, DEADLINE_US = 3, 2, 1, 2, 5, 100
INT32, SCALED, RESULT = 0, 1, 0x80
COUNTERS = {
    "new": "contribution_new",
    "duplicate": "contribution_duplicate",
    "stale": "contribution_stale",
    "refused": "contribution_refused",
    "late": "contribution_late",
    "held": "contribution_held",
    "complete": "chunk_complete",
    "closed_early": "chunk_closed_early",
    "repeated": "result_repeated",
}
PRESENCE_BYTES, SHAPE_BYTES = 8, 18
HEADER_BYTES = struct.calcsize(AGGREGATION)
FIRST_TAG = 2**32 - 40
"""Tags go on after 2^32 - 1 with 0."""

Program = Callable[..., Pipeline]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """program(sets, workers) is the program with the entries of one job."""
    folder = tmp_path_factory.mktemp("deadline")

    def make(sets: int, workers: int) -> Pipeline:
        json = folder / f"{sets}.json"
        if not json.exists():
            sizes = [f"-DLANES={LANES}", "-DSLOTS=4", f"-DDEADLINE={DEADLINE_US}", f"-DSETS={sets}"]
            subprocess.run([*COMPILE, "-o", str(json), *sizes], cwd=ROOT, check=True)
        pipeline = Pipeline.load(json)
        ports = range(1, workers + 1)
        write_entries(pipeline, summing(Slots(JOB, INDEX, ports, FIRST_SLOT, SLOTS, 9)))
        return pipeline

    return make


def payload(packet: Packet, kind: int, version: int = 2) -> bytes:
    head = version, kind, JOB, packet.slot, packet.exponent, 0, packet.tag % 2**32
    bits = sum(1 << rank for rank in packet.present).to_bytes(PRESENCE_BYTES, "big")
    shapes = b"".join(shape.to_bytes(SHAPE_BYTES, "big") for shape in packet.shapes)
    values = struct.pack(f"!{len(packet.values)}I", *packet.values)
    return struct.pack(AGGREGATION, *head) + bits + shapes + values


def frame(rank: int, packet: Packet) -> bytes:
    return to_aggregator(rank + 1, JOB, payload(packet, packet.kind))


def result_frame(rank: int, packet: Packet) -> bytes:
    return from_aggregator(worker(rank + 1, JOB), payload(packet, packet.kind | RESULT))


def kind_of(tag: int) -> int:
    """Every fifth packet of a slot is an OPENING."""
    return OPENING if tag % 5 == 0 else (INT32, SCALED)[tag % 2]


def made(chance: Random, slot: int, tag: int) -> Packet:
    kind = kind_of(tag)
    values = tuple(chance.getrandbits(32) for _ in range(LANES))
    shape = chance.getrandbits(144)
    body = ((), (shape, shape)) if kind == OPENING else (values, ())
    # What a contribution says of who is in it does not count.
    claimed = frozenset(rank for rank in range(64) if chance.random() < 1 / 2)
    return Packet(slot, tag, kind, chance.randrange(256), *body, claimed)


class Checked:
    """The program beside the model: whatever one of them answers the other has to."""

    def __init__(self, pipeline: Pipeline, sets: int, workers: int) -> None:
        self.pipeline, self.workers = pipeline, workers
        self.model = DeadlineModel(workers, sets, DEADLINE_US)
        self.now_us = 5

    def restart(self, pipeline: Pipeline) -> None:
        """The switch begins again with empty registers."""
        self.pipeline = pipeline
        self.model.lose_everything()
        self.model.counts.clear()

    def give(self, rank: int, packet: Packet) -> tuple[set[int], Packet] | None:
        answer = self.model.receive(rank, packet, self.now_us)
        out = self.pipeline.process(rank + 1, frame(rank, packet), self.now_us)
        receivers, result = answer or (set(), None)
        wanted = {to + 1: result_frame(to, result) for to in receivers if result}
        assert dict(out) == wanted, (rank, packet, self.now_us)
        assert len(out) == len(wanted)
        for _, sent in out:
            opened(sent)
        return answer

    def check_counters(self) -> None:
        for what, name in COUNTERS.items():
            counter = f"SwitchmlIngress.aggregation.{name}"
            count, _ = self.pipeline.counters.read(counter, INDEX)
            assert count == self.model.counts[what], what


@pytest.mark.long(but=["1-2", "4-16", "2-8", "1-16"])
@pytest.mark.parametrize("sets", [2, 4, 8, 16])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_packets_at_any_time(program: Program, sets: int, workers: int) -> None:
    """Around a slowly advancing tag every rule meets every other."""
    chance = Random(f"{sets} {workers}")
    checked = Checked(program(sets, workers), sets, workers)
    for step in range(900):
        checked.now_us += chance.choice((0, 1, 10, 60))
        away = chance.choice((-sets - 1, -sets, -1, -1, 0, 0, 0, 0, 0, 1, 1, 2))
        tag = FIRST_TAG + step // 12 + away
        packet = made(chance, chance.randrange(SLOTS), tag)
        if chance.random() < 1 / 20:
            packet = replace(packet, kind=INT32, values=(1,) * LANES, shapes=())
        checked.give(chance.randrange(workers), packet)
    checked.check_counters()
    counts = checked.model.counts
    assert all(counts[what] for what in ("new", "stale", "complete", "repeated", "duplicate"))
    rare = ("closed_early", "late", "refused", *(("held",) if sets < 8 else ()))
    assert workers == 1 or all(counts[what] for what in rare)


class Walker:
    """A worker with one slot: it sends a tag when it has the result of the one before, and takes
    results of tags that it has not sent."""

    def __init__(self, rank: int, first_tag: int) -> None:
        self.rank, self.tag = rank, first_tag
        self.packet: Packet | None = None

    def take(self, result: Packet) -> bool:
        if result.tag != self.tag:
            return False
        self.tag, self.packet = self.tag + 1, None
        return True


def walk(
    checked: Checked,
    sets: int,
    chance: Random,
    losses: float,
    slow: float,
    fresh: Callable[[], Pipeline] | None = None,
) -> Iterator[dict[int, Packet]]:
    """Workers that do as the protocol says, of which the last is slow, with lost packets; yields
    each worker's results at the end. With `fresh`, the switch is restarted once on the way, and
    they need not come to the end."""
    last, steps = 60, 6_000 if fresh else 40_000
    walkers = [Walker(rank, 1) for rank in range(checked.workers)]
    results: list[dict[int, Packet]] = [{} for _ in walkers]
    restarted = False
    for _ in range(steps):
        left = [one for one in walkers if one.tag <= last]
        if not left:
            break
        if fresh and max(one.tag for one in walkers) > last // 2 + 3:  # no OPENING is near
            checked.restart(fresh())
            restarted, fresh = True, None
        checked.now_us += chance.choice((0, 1, 5, 30))
        one = chance.choice(left)
        if one.rank == checked.workers - 1 and chance.random() < slow:
            continue
        one.packet = one.packet or made(chance, 0, one.tag)
        if chance.random() < losses:
            continue
        receivers, result = checked.give(one.rank, one.packet) or (set(), None)
        for to in receivers:
            if result and chance.random() >= losses and walkers[to].take(result):
                results[to][result.tag] = result
        tags = [each.tag for each in walkers]
        assert max(tags) - min(tags) <= sets, "nobody is so far ahead that a result is lost"
    assert restarted or all(one.tag > last for one in walkers), "everybody comes to the end"
    yield from results


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sets", [2, 4, 8])
def test_stragglers_catch_up_and_all_have_the_same_sums(
    program: Program, sets: int, seed: int
) -> None:
    chance = Random(f"{sets} {seed}")
    checked = Checked(program(sets, 3), sets, 3)
    found = list(walk(checked, sets, chance, losses=seed % 3 * 0.15, slow=0.9))
    assert found[0] == found[1] == found[2]
    assert checked.model.counts["closed_early"] and not checked.model.counts["stale"]
    checked.check_counters()


@pytest.mark.long(but=["2-0", "8-7", "8-0", "2-4"])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sets", [2, 8])
def test_a_restarted_switch_gives_nobody_another_sum(
    program: Program, sets: int, seed: int
) -> None:
    """It does not know whether a chunk was summed before, so it waits until all are at one chunk.
    What two workers have of a chunk is the same, whether they come to the end or not."""
    chance = Random(f"restart {sets} {seed}")
    checked = Checked(program(sets, 3), sets, 3)
    found = list(walk(checked, sets, chance, 0.2, 0.5, lambda: program(sets, 3)))
    for tag in set().union(*found):
        assert len({found[rank][tag] for rank in range(3) if tag in found[rank]}) == 1, tag
    checked.check_counters()


@pytest.mark.parametrize(
    ("version", "kind", "cut"),
    [(1, INT32, 0), (3, INT32, 0), (2, INT32, 4), (2, INT32, 8), (2, 3, 0)],
)
def test_other_packets_are_refused(program: Program, version: int, kind: int, cut: int) -> None:
    pipeline = program(8, 1)
    packet = made(Random(1), 0, 1)
    body = payload(packet, kind, version)
    assert pipeline.process(1, to_aggregator(1, JOB, body[: len(body) - cut]), 5) == []
    refused = "SwitchmlIngress.aggregation.contribution_refused"
    assert pipeline.counters.read(refused, INDEX)[0] == 1
    whole = to_aggregator(1, JOB, payload(packet, packet.kind))
    assert len(pipeline.process(1, whole, 5)) == 1


def test_the_slot_behind_a_jobs_last_one_is_not_its_own(program: Program) -> None:
    """The switch has it: the next job may own it."""
    pipeline = program(8, 2)
    counters = "SwitchmlIngress.aggregation."
    for slot, new, refused in ((SLOTS - 1, 1, 0), (SLOTS, 1, 1)):
        assert pipeline.process(1, frame(0, made(Random(1), slot, 1)), 5) == []
        assert pipeline.counters.read(f"{counters}contribution_new", INDEX)[0] == new
        assert pipeline.counters.read(f"{counters}contribution_refused", INDEX)[0] == refused


@pytest.mark.parametrize(
    "parameters, problem",
    [
        (["-DSETS=3"], "SETS must be 2, 4, 8 or 16"),
        (["-DSETS=4", "-DSLOTS=16385"], "SETS * SLOTS must be 1 to 65536"),
        (["-DSLOTS=0"], "SETS * SLOTS must be 1 to 65536"),
    ],
)
def test_programs_that_cannot_be(parameters: list[str], problem: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMPILE, *parameters, "-o", str(tmp_path / "x.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and problem in done.stderr
