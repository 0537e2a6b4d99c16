"""Workers that do not reduce alike, through the real program in racks and trees: an error at every
worker, whatever links do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agglab.hosts import wire
from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.base.worker_id import Event, WorkerId
from agglab.testbed.run.programs.program import compile_program
from agglab.testbed.systems.summing.plan import PlacedJob, plan
from agglab.testbed.virtual import CompiledProgram, VirtualBackend
from agglab.topologies import Direction, Topology, fat_tree, rack, two_tier
from agglab.topologies.graph import Drop, Duplicate, Reorder
from agglab.verification.explore.schedules import LANES, SLOTS

LIMIT_NS = 600_000_000_000
GRAPHS = {"rack": rack(3), "two_tier": two_tier(2, 2), "fat_tree": fat_tree(4, 5)}
BAD = Direction(
    rate_bps=10_000_000,
    delay_us=100,
    impairments=(Drop(0.1), Duplicate(0.2), Reorder(0.2, 20_000)),
)
ALIKE: dict[str, Any] = {"elements": 24 * LANES, "dtype": "float32", "window": 4, "lanes": LANES}
CHANGES: list[Mapping[str, Any]] = [
    {"elements": 20 * LANES},
    {"elements": 24 * LANES - 1},
    {"elements": 1},
    {"elements": 0},
    {"dtype": "int32"},
    {"lanes": LANES + 1},
    {"window": 3},
    {"workers": 9},
]


@pytest.fixture(scope="module")
def compiled() -> CompiledProgram:
    return CompiledProgram(
        compile_program(
            REPOSITORY / "p4" / "switchml.p4", "agglab", {"LANES": LANES, "SLOTS": SLOTS}
        ).json
    )


class Rig:
    """A job of all hosts, on links that lose, double and reorder frames; `rank` is configured
    otherwise."""

    def __init__(
        self, compiled: CompiledProgram, graph: Topology, seed: int, rank: int, change: Any
    ) -> None:
        for link in graph.links:
            graph = graph.with_link(link.name, BAD, BAD)
        self.graph, self.seed = graph, seed
        programs = {switch.name: compiled for switch in graph.switches}
        self.backend = VirtualBackend(graph, seed, programs, limit_ns=LIMIT_NS)
        hosts = tuple(host.name for host in graph.hosts)
        self.ids = [WorkerId(1, name) for name in hosts]
        for switch, entries in plan(graph, [PlacedJob(1, hosts, 0, 4)]).entries.items():
            self.backend.write_entries(switch, entries)
        for number in range(len(hosts)):
            self.start(number, change if number == rank else {})
        self.until(("ready",))

    def start(self, rank: int, change: Mapping[str, Any]) -> None:
        host = self.graph.hosts[rank]
        configuration = {
            "name": host.name,
            "job": 1,
            "rank": rank,
            "workers": len(self.ids),
            "system": "agglab.systems.switchml.endpoint",
            "role": "worker",
            "bind": [host.ip, 48866],
            "link_rate_bps": 1e7,
            "seed": self.seed,
            "give_up_s": 30.0,
        }
        settings: dict[str, Any] = {
            "slots": 4,
            "first_tag": 2**31 + 1,
            "aggregator": wire.AGGREGATOR,
        }
        work: dict[str, Any] = {"kind": "allreduce"}
        places = {"lanes": settings, "window": settings, "workers": configuration}
        for name, value in {**ALIKE, **change}.items():
            places.get(name, work)[name] = value
        given = {**configuration, "work": work, "settings": settings}
        self.backend.start_worker(self.ids[rank], given)

    def all(self, **command: Any) -> None:
        for worker in self.ids:
            self.backend.command(worker, command)

    def until(self, kinds: tuple[str, ...]) -> list[Event]:
        """One event of these kinds from each worker."""
        found: list[Event] = []
        while len(found) < len(self.ids):
            found += [each for each in self.backend.wait(2**62) if each["event"] in kinds]
        return found

    def round(self, number: int) -> list[Event]:
        """How a round ended, by rank."""
        self.all(command="round", round=number)
        return sorted(self.until(("round", "failed")), key=lambda event: event["rank"])


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_worker_of_the_job_raises_and_names_both(
    compiled: CompiledProgram, graph: str, change: Mapping[str, Any]
) -> None:
    for seed in range(4):
        other = seed % len(GRAPHS[graph].hosts)
        rig = Rig(compiled, GRAPHS[graph], seed, other, change)
        with rig.backend:
            [(name, value)] = change.items()
            agreed = {**ALIKE, "workers": len(rig.ids)}[name]
            for rank, event in enumerate(rig.round(0)):
                assert event["event"] == "failed", "a sum that cannot be right"
                own, _, named = (
                    event["error"].partition("this worker reduces ")[2].partition(", another ")
                )
                first, second = (value, agreed) if rank == other else (agreed, value)
                assert str(first) in own and str(second) in named, event["error"]


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_worker_that_starts_again_is_in_another_round(
    compiled: CompiledProgram, graph: str
) -> None:
    """It takes its tags up where they were, as docs/hosts.md says, but the others did not start
    again."""
    tags = 1 + ALIKE["elements"] // LANES // ALIKE["window"]
    rig = Rig(compiled, GRAPHS[graph], 5, 0, {})
    with rig.backend:
        assert [event["event"] for event in rig.round(0)] == ["round"] * len(rig.ids)
        again = {"first_tag": 2**31 + 1 + tags, "slots": 4, "window": ALIKE["window"]}
        members = list(range(len(rig.ids)))
        rig.backend.command(
            rig.ids[1], {"command": "configure", "members": members, "settings": again}
        )
        for rank, event in enumerate(rig.round(1)):
            own, another = (0, 1) if rank == 1 else (1, 0)
            assert event["event"] == "failed"
            assert f"round {own} of job 1: this worker" in event["error"]
            words = f"float32 elements with round (modulo 256) {another}; all workers"
            assert words in event["error"]
