"""Schedules are sound and repeatable; a broken switch is found and shrunk to a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from own_program import AGGREGATION, own_program

from agglab.testbed import systems
from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.run.programs.program import Program, compile_program
from agglab.testbed.scenario import load
from agglab.testbed.schema.fault_kinds import FaultEntry
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.systems.base import RightResults
from agglab.verification import programs
from agglab.verification.explore.schedules import LANES, SLOTS, schedule
from agglab.verification.explore.search import Subject, minimal, search, try_seed, write
from agglab.verification.explore.shrink import listed, sound
from agglab.verification.trial import try_scenario

SYSTEM = "switchml"
PROGRAM = REPOSITORY / "p4" / "switchml.p4"
SIZES = {"LANES": LANES, "SLOTS": SLOTS}
SEEDS = range(7000, 7060)
STOPPED_TWICE = (18, 248, 443)
"""Seeds that draw two faults that stop the same program, of which one is left out."""


@pytest.fixture(scope="module")
def compiled() -> Program:
    return compile_program(PROGRAM, "agglab", SIZES)


@pytest.fixture(scope="module")
def adds_twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A contribution that comes twice before its slot is complete is added twice."""
    old = "(meta.before & meta.worker) != 0"
    new = f"{old} && meta.before == meta.all_workers"
    yield own_program(tmp_path_factory.mktemp("p4"), (AGGREGATION, old, new))


def test_schedules_are_sound_and_repeat() -> None:
    for system in systems.in_virtual_time(systems.built_in()):
        assert all(sound(schedule(seed, system)) for seed in (*SEEDS, *STOPPED_TWICE)), system
    assert [schedule(seed, SYSTEM) for seed in SEEDS] == [schedule(seed, SYSTEM) for seed in SEEDS]
    kinds = {fault.kind for seed in range(400) for fault in schedule(seed, SYSTEM).faults}
    assert len(kinds) == 16
    with_servers = {fault.kind for seed in range(400) for fault in schedule(seed, "ps").faults}
    own = {"server_pause", "server_crash", "server_restart", "server_slow"}
    assert with_servers - kinds == own and kinds < with_servers


def test_periodic_losses_end() -> None:
    """Seed 3005661 of system ps has one that was drawn without an end."""
    schedules = [schedule(seed, SYSTEM) for seed in (*range(400), 3005661)]
    periodic = [f for each in schedules for f in each.faults if f.kind == "periodic"]
    assert len(periodic) > 20
    assert all(fault.for_s for fault in periodic)


def test_losses_by_chance_become_lists_beside_those_that_are_there() -> None:
    """A direction has one drop list at most."""
    own = FaultEntry(kind="drop_list", link="h1->s1", packets=(7,))
    chance = FaultEntry(kind="loss", link="h2->s1", probability=0.5)
    down = FaultEntry(kind="link_down", link="h2-s1", for_s=0.1)
    random = Scenario(name="s", faults=(own, chance, down))
    random = replace(random, links=replace(random.links, loss=0.25))
    exact = listed(random, {"h1->s1": (7, 9), "h2->s1": (2, 3), "s1->h1": ()})
    lost = FaultEntry(kind="drop_list", link="h2->s1", packets=(2, 3))
    assert exact.faults == (lost, own, down) and exact.links.loss == 0
    assert sound(exact)


@pytest.mark.long
def test_schedules_end_as_they_must(compiled: Program) -> None:
    trials = {seed: try_scenario(schedule(seed, SYSTEM), compiled) for seed in SEEDS}
    assert {seed: t.finding for seed, t in trials.items() if t.finding} == {}
    again = [try_scenario(schedule(seed, SYSTEM), compiled).actions for seed in SEEDS[:10]]
    assert again == [trials[seed].actions for seed in SEEDS[:10]]


@pytest.mark.long
def test_a_broken_switch_is_found_and_shrunk(adds_twice: Path, tmp_path: Path) -> None:
    subject = Subject(SYSTEM, adds_twice)
    tally = search(subject, range(20), processes=2)
    assert tally.schedules == 20
    first = next(each for each in tally.found if each.finding.kind == "wrong sum")
    small, finding = minimal(first.seed, first.finding, subject)
    assert finding.kind == "wrong sum"
    assert len(small.faults) <= 1 and small.topology.kind == "rack"
    assert all(len(fault.packets) <= 1 for fault in small.faults)
    # What is written is a valid scenario, fails alike, and does not with the right program.
    path = write(small, adds_twice, tmp_path)
    (point,) = load(path).points
    program = compile_program(point.resolved.programs["s1"].path, "agglab", SIZES)
    again = try_scenario(point.resolved.scenario, program).finding
    assert again and again.kind == "wrong sum"


def test_the_right_switch_passes_what_the_broken_one_failed(
    adds_twice: Path, compiled: Program
) -> None:
    wrong = compile_program(adds_twice, "agglab", SIZES)
    for seed in range(20):
        if try_scenario(schedule(seed, SYSTEM), wrong).finding:
            assert try_scenario(schedule(seed, SYSTEM), compiled).finding is None


@pytest.mark.long
def test_a_switch_that_never_answers_again_is_a_failure(tmp_path: Path) -> None:
    """Without answers to repeated contributions a lost result is lost for good."""
    program = own_program(tmp_path, (AGGREGATION, "if (meta.holds_result) {", "if (false) {"))
    silent = compile_program(program, "agglab", SIZES)
    found = [try_scenario(schedule(seed, SYSTEM), silent).finding for seed in range(30)]
    assert "failure" in {each.kind for each in found if each}


@pytest.mark.long
def test_other_systems_meet_the_same_schedules() -> None:
    """The same network, jobs and faults, but for those of servers; and nothing is found in the
    first of them."""
    for system in ("ring", "ps"):
        for seed in SEEDS:
            alike = [f for f in schedule(seed, system).faults if f.server is None]
            assert alike == list(schedule(seed, SYSTEM).faults)
        tally = search(Subject(system, programs.path(system)), range(60), processes=2)
        assert (tally.schedules, tally.found) == (60, ())


def test_what_another_system_gets_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged by a truth that is off by one, every round that ends is wrong."""
    right = systems.find("ring").right_results

    def off_by_one(*asked: Any) -> Any:
        def truth(start: int, inputs: Any) -> Any:
            expected = right(*asked).truth(start, inputs)
            expected.values[0] += 1
            return expected

        return RightResults(truth)

    monkeypatch.setattr(systems.find("ring"), "right_results", off_by_one)
    subject = Subject("ring", programs.path("ring"))
    found = [try_seed(seed, subject).finding for seed in range(10)]
    assert any(each is not None and each.kind == "wrong sum" for each in found)
