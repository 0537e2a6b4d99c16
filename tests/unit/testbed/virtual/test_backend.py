"""The whole of a network in virtual time: exact under every impairment, and what workers, links and
switches do when they are told to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from agglab.hosts import wire
from agglab.hosts.tensors import make_tensor
from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.base.worker_id import Event, WorkerId
from agglab.testbed.run.programs.program import Program, compile_program
from agglab.testbed.schema.fault_kinds import FaultEntry
from agglab.testbed.schema.network_sections import Links, Switch
from agglab.testbed.schema.network_sections import Topology as Shape
from agglab.testbed.schema.scenario import Scenario, Timeouts
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.summing.plan import PlacedJob, plan
from agglab.testbed.virtual import CompiledProgram, NeverEnds, VirtualBackend
from agglab.topologies import Direction, rack
from agglab.topologies.graph import Corrupt, Topology
from agglab.verification.explore.schedules import LANES, SLOTS
from agglab.verification.trial import try_scenario

S = 1_000_000_000
ELEMENTS, SEED = 70, 3
CHUNKS = -(-ELEMENTS // LANES)


@pytest.fixture(scope="module")
def program() -> Program:
    sizes = {"LANES": LANES, "SLOTS": SLOTS}
    return compile_program(REPOSITORY / "p4" / "switchml.p4", "agglab", sizes)


@pytest.fixture(scope="module")
def compiled(program: Program) -> CompiledProgram:
    return CompiledProgram(program.json)


def slow_rack() -> Topology:
    """1 Mbit/s: a frame of 70 bytes takes 560 us."""
    direction = Direction(rate_bps=1_000_000)
    graph = rack(3)
    for link in graph.links:
        graph = graph.with_link(link.name, direction, direction)
    return graph


def expected(number: int, workers: int) -> npt.NDArray[np.int32]:
    total = np.zeros(ELEMENTS, np.int64)
    for rank in range(workers):
        total += make_tensor(SEED, 1, rank, number, ELEMENTS, "int32")
    return total.astype(np.int32)


class Rig:
    """Three workers of one job on a rack, driven by hand."""

    def __init__(self, compiled: CompiledProgram, limit_s: float | None = None) -> None:
        self.graph = slow_rack()
        limit_ns = None if limit_s is None else round(limit_s * S)
        programs = {switch.name: compiled for switch in self.graph.switches}
        self.backend = VirtualBackend(self.graph, SEED, programs, limit_ns=limit_ns)
        hosts = tuple(host.name for host in self.graph.hosts)
        self.ids = [WorkerId(1, name) for name in hosts]
        self.entries = plan(self.graph, [PlacedJob(1, hosts, 0, 4)]).entries["s1"]
        self.backend.write_entries("s1", self.entries)
        for rank in range(3):
            self.start(rank)
        self.events = self.until("ready", 3)

    def start(self, rank: int) -> None:
        host = self.graph.hosts[rank]
        self.backend.start_worker(
            self.ids[rank],
            {
                "name": host.name,
                "job": 1,
                "rank": rank,
                "workers": 3,
                "system": "agglab.systems.switchml.endpoint",
                "role": "worker",
                "settings": {
                    "lanes": LANES,
                    "slots": 4,
                    "window": 4,
                    "first_tag": 1,
                    "aggregator": wire.AGGREGATOR,
                },
                "bind": [host.ip, 48866],
                "link_rate_bps": 1e6,
                "work": {"kind": "allreduce", "elements": ELEMENTS, "dtype": "int32"},
                "seed": SEED,
                "give_up_s": 2.0,
            },
        )

    def all(self, **command: Any) -> None:
        for worker in self.ids:
            self.backend.command(worker, command)

    def until(self, event: str, count: int) -> list[Event]:
        """Events up to so many of a kind."""
        found: list[Event] = []
        while sum(each["event"] == event for each in found) < count:
            found += self.backend.wait(1000 * S)
        return found

    def assert_exact(self, number: int) -> None:
        total = sum(
            make_tensor(SEED, 1, r, number, ELEMENTS, "int32").astype(int) for r in (0, 1, 2)
        )
        for rank in range(3):
            received = self.backend.received(1, rank, number)
            assert received and received.result is not None
            assert np.array_equal(received.result[:], np.asarray(total).astype(np.int32))
            assert self.backend.received(1, rank, number) is None


@pytest.fixture
def rig(compiled: CompiledProgram) -> Iterator[Rig]:
    made = Rig(compiled)
    with made.backend:
        yield made


def test_a_round_takes_the_time_of_its_frames(rig: Rig) -> None:
    """An opening takes 720 us, then 18 chunks follow each other at 560 us; so do results, from the
    moment the opening is up. Nothing else takes time."""
    rig.all(command="round", round=0, marks=[5])
    events = rig.until("round", 3)
    ended = [event for event in events if event["event"] == "round"]
    times = {event["end_ns"] - event["start_ns"] for event in ended}
    assert times == {2 * 720_000 + CHUNKS * 560_000}
    assert [event["stats"]["sent"] for event in ended] == [1 + CHUNKS] * 3
    marks = [event for event in events if event["event"] == "chunk"]
    assert [(each["chunk"], each["t_ns"]) for each in marks] == [(5, 2 * 720_000 + 5 * 560_000)] * 3
    rig.assert_exact(0)
    new = rig.backend.counters("s1", "contribution_new")
    assert new is not None and new[0] == (3 * (1 + CHUNKS), 3 * (90 + CHUNKS * 70))
    ways = {way.direction: way for way in rig.backend.statistics().directions}
    assert ways["h1->s1"].packets == ways["s1->h3"].seen == 1 + CHUNKS
    assert ways["h2->s1"].bytes == 90 + CHUNKS * 70


def test_a_paused_worker_goes_on_with_what_has_come(rig: Rig) -> None:
    rig.all(command="round", round=0)
    assert rig.backend.wait(2_000_000) == []
    rig.backend.pause_worker(rig.ids[1], True)
    assert rig.backend.wait(500_000_000) == []
    rig.backend.pause_worker(rig.ids[1], False)
    assert min(e["end_ns"] for e in rig.until("round", 3)) > 500_000_000
    rig.assert_exact(0)


def test_a_slow_worker_slows_all(rig: Rig) -> None:
    rig.backend.command(rig.ids[0], {"command": "slow", "delay_s": 0.01})
    rig.all(command="round", round=0)
    # It looks every 10 ms at what is at most a window of 4.
    least_ns = (CHUNKS // 4 - 1) * 10_000_000
    assert all(e["end_ns"] > least_ns for e in rig.until("round", 3))
    rig.assert_exact(0)


def test_a_killed_worker_is_missed_by_the_others(rig: Rig) -> None:
    rig.all(command="round", round=0)
    rig.backend.wait(3_000_000)
    rig.backend.kill_worker(rig.ids[2])
    events = rig.until("failed", 2)
    assert (events[0]["event"], events[0]["status"]) == ("ended", -9)
    failed = [event for event in events if event["event"] == "failed"]
    assert all(
        e["missing"] and e["waiting"] and "no result for chunk" in e["error"] for e in failed
    )
    _, slot, tag, _ = failed[0]["waiting"][0]
    cell = slot << 1 | tag & 1
    assert rig.backend.registers("s1", "tags", [cell]) == [tag]
    assert rig.backend.registers("s1", "contributors", [cell]) == [0b011]
    assert rig.backend.registers("s1", "no_such_register", [0]) is None
    # In a new session two survivors go on; tensors keep the ranks.
    pair = rig.ids[:2]
    hosts = tuple(worker.host for worker in pair)
    rig.backend.write_entries("s1", plan(rig.graph, [PlacedJob(1, hosts, 0, 4)]).entries["s1"])
    settings = {"first_tag": (1 << 20) + 1, "slots": 4, "window": 4}
    session = {"members": [0, 1], "settings": settings}
    for worker in pair:
        rig.backend.command(worker, {"command": "configure", **session})
        rig.backend.command(worker, {"command": "round", "round": 0})
    rig.until("round", 2)
    received = rig.backend.received(1, 1, 0)
    assert received and received.result is not None
    assert np.array_equal(received.result[:], expected(0, 2))


def test_an_aborted_round_can_run_again(rig: Rig) -> None:
    rig.all(command="round", round=0)
    rig.backend.wait(3_000_000)
    rig.all(command="abort")
    assert all(event["waiting"] for event in rig.until("aborted", 3))
    settings = {"first_tag": (1 << 20) + 1, "slots": 4, "window": 2}
    rig.all(command="configure", members=[0, 1, 2], settings=settings)
    rig.until("ready", 3)
    rig.all(command="round", round=0)
    rig.until("round", 3)
    rig.assert_exact(0)


def test_a_restarted_switch_is_empty_and_keeps_what_it_counted(rig: Rig) -> None:
    rig.all(command="round", round=0)
    rig.until("round", 3)
    rig.backend.stop_switch("s1")
    rig.backend.write_entries("s1", rig.entries)  # nothing happens
    assert rig.backend.registers("s1", "tags", [1]) is None
    rig.all(command="round", round=1)
    rig.backend.wait(rig.backend.now_ns() + 5_000_000)
    rig.backend.start_switch("s1")
    assert rig.backend.registers("s1", "tags", [0, 1, 2, 3]) == [0] * 4
    rig.backend.write_entries("s1", rig.entries)
    rig.until("round", 3)
    rig.assert_exact(1)
    new = rig.backend.counters("s1", "contribution_new")
    assert new is not None and new[0][0] == 2 * 3 * (1 + CHUNKS)
    assert rig.backend.statistics().switches[0].details["stopped"] == 3 * 4


def test_a_link_fault_begins_and_ends(rig: Rig) -> None:
    rig.backend.set_link_down(0, "h2-s1", True)
    rig.all(command="round", round=0)
    rig.backend.wait(10_000_000)
    rig.backend.set_link_down(0, "h2-s1", False)
    rig.until("round", 3)
    rig.assert_exact(0)
    ways = {way.direction: way for way in rig.backend.statistics().directions}
    assert ways["h2->s1"].lost_link_down == 4 and ways["s1->h2"].lost_link_down == 0


def test_corrupted_frames_are_refused_by_switch_and_hosts(rig: Rig) -> None:
    ways = ("h1->s1", "s1->h1")
    rig.backend.set_impairment(1, "h1-s1", ways, Corrupt(0.3), True)
    rig.all(command="round", round=0)
    rig.until("round", 3)
    rig.assert_exact(0)
    found = {way.direction: way.corrupted for way in rig.backend.statistics().directions}
    assert found["h1->s1"] > 0 and found["s1->h1"] > 0 and found["h2->s1"] == 0


def test_time_can_have_an_end(compiled: CompiledProgram) -> None:
    rig = Rig(compiled, limit_s=1.0)
    with rig.backend, pytest.raises(NeverEnds, match="not complete after 1 s"):
        rig.until("round", 1)


IMPAIRMENTS = [
    {"kind": "loss", "probability": 0.2},
    {"kind": "gilbert_elliott", "to_bad": 0.1, "to_good": 0.3},
    {"kind": "periodic", "every": 5, "count": 2},
    {"kind": "drop_list", "packets": (0, 1, 2, 9, 30)},
    {"kind": "duplicate", "probability": 0.3},
    {"kind": "reorder", "probability": 0.2, "delay_s": 0.003},
    {"kind": "reorder", "probability": 0.05, "delay_s": 0.15},
    {"kind": "corrupt", "probability": 0.2},
    {"kind": "jitter", "jitter_s": 0.004},
]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("impairment", IMPAIRMENTS, ids=lambda each: str(each["kind"]))
@pytest.mark.parametrize("shape", [Shape("rack", 3), Shape("two_tier", 2, racks=2)])
def test_sums_are_exact_under(
    impairment: dict[str, Any], shape: Shape, dtype: str, program: Program
) -> None:
    scenario = Scenario(
        name="impaired",
        seed=11,
        topology=shape,
        links=Links(rate_bps=5_000_000),
        switch=Switch(lanes=LANES, slots=SLOTS),
        workload=Workload(elements=150, dtype=dtype, rounds=2, window=6, give_up_s=60.0),
        faults=(FaultEntry(link="*", **impairment),),
        timeouts=Timeouts(round_s=600.0),
    )
    assert try_scenario(scenario, program).finding is None
