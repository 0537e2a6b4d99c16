"""What `explore` and `sweep` judge besides sums and failures: findings, links and counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from own_program import AGGREGATION, own_program

from agglab.testbed import systems
from agglab.testbed.run.programs.program import Program, compile_program
from agglab.testbed.schema.network_sections import Links, Switch, Topology
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.schema.workload_section import Workload
from agglab.testbed.systems.base import Traffic
from agglab.verification import programs, proofs
from agglab.verification.explore.schedules import LANES, SLOTS, schedule
from agglab.verification.explore.search import Subject, minimal
from agglab.verification.trial import Trial, try_scenario

SIZES = {"LANES": LANES, "SLOTS": SLOTS}
LINKS = Links(rate_bps=100_000_000, delay_s=0.0005)
SMALL = Scenario(
    name="small",
    seed=1,
    backend="virtual",
    topology=Topology("rack", 2),
    links=LINKS,
    switch=Switch(lanes=LANES, slots=SLOTS),
    workload=Workload(elements=4 * LANES, dtype="int32", rounds=1, window=4),
)
"""A run of SwitchML in which nothing goes wrong."""


@cache
def program_of(system: str) -> Program:
    return Subject(system, programs.path(system)).compiled


def kinds(trial: Trial) -> set[str]:
    return {finding.kind for finding in trial.findings}


def test_a_run_in_which_nothing_goes_wrong_has_no_findings() -> None:
    assert kinds(try_scenario(SMALL, program_of("switchml"))) == set()


@pytest.mark.long(but=["ring-7082", "atp-7018", "switchml-159", "ring-7029"])
@pytest.mark.parametrize(
    ("system", "seed"),
    [
        ("ring", 7082),  # a window of one packet was called slow
        ("ring", 7029),  # a changed address takes a packet to another link
        ("switchml", 7015),  # a switch that lost its memory sends sums up again
        ("switchml", 159),  # who waits for a worker that mends this asks again, too
        ("omnireduce", 7015),
        ("atp", 7018),  # a result that is late delays the next chunk of its position
        ("mlfabric", 7102),  # a server that was started again knows no older packet
        ("mlfabric", 7009),  # and one that stays dead answers nobody, in no session
        ("netrpc", 7093),  # a job that fails asks until it gives up
        ("ps", 54),  # a slow worker sleeps for longer than its fault lasts
        ("libra", 7261),  # a worker has a window for each server
        ("libra", 283),  # a server on the own host is near for cold keys only
        ("esa", 7083),  # jobs whose chunks want the same slot
        ("libra", 274),  # round trips to a server while others were silent
        ("netrpc", 0),  # requests for places are longer than packets of values
        ("netrpc", 6),  # a worker meets others that have more keys
        ("netrpc", 226),  # a worker near the root meets others that are far
        ("netrpc", 74),  # calls of a word count follow one another
        ("omnireduce", 285),  # openings share a frame that is longer than others
        ("omnireduce", 1945),  # a worker waits for one whose values a switch lost
    ],
)
def test_what_a_schedule_explains_is_no_finding(system: str, seed: int) -> None:
    assert try_scenario(schedule(seed, system), program_of(system)).findings == ()


def test_timers_that_are_too_short_are_found() -> None:
    hasty = replace(SMALL, workload=replace(SMALL.workload, first_timeout_s=0.0002))
    assert kinds(try_scenario(hasty, program_of("switchml"))) == {"sent-again"}


@pytest.mark.long
def test_a_counter_that_counts_too_little_is_found(tmp_path: Path) -> None:
    broken = own_program(tmp_path, (AGGREGATION, "contribution_new.count(meta.job);", ""))
    assert "miscounted" in kinds(try_scenario(SMALL, compile_program(broken, "agglab", SIZES)))


def predict_more(system: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the system predict this number of bytes more on each link that a round uses."""
    right = systems.find(system).traffic

    def wrong(*asked: Any) -> Traffic:
        traffic = right(*asked)

        def of_round(number: int) -> Mapping[str, int]:
            return {name: known + size for name, known in traffic.of_round(number).items()}

        return replace(traffic, of_round=of_round)

    monkeypatch.setattr(systems.find(system), "traffic", wrong)


def test_a_byte_that_was_not_predicted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest scenario that shows it asks for a judgement of its links."""
    predict_more("ring", 1, monkeypatch)
    subject = Subject("ring", programs.path("ring"))
    trial = try_scenario(schedule(7003, "ring"), subject.compiled)
    assert kinds(trial) == {"link bytes"}
    small, finding = minimal(7003, trial.findings[0], subject)
    assert "1 bytes fewer than predicted" in finding.text
    assert "links_as_predicted" in [expectation.metric for expectation in small.expect]


def test_an_emptied_switch_excuses_no_other_link(monkeypatch: pytest.MonkeyPatch) -> None:
    predict_more("switchml", -1, monkeypatch)
    trial = try_scenario(schedule(7015, "switchml"), program_of("switchml"))
    assert kinds(trial) == {"link bytes"}


@pytest.mark.long
def test_collisions_explain_no_more_than_they_can_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 7083 has 12 repetitions that nothing but collisions explains."""
    colliding = schedule(7083, "esa")
    for most, expected in ((12, set()), (11, {"sent-again"})):
        at_most = proofs.Proofs(repeats=lambda resolved, counters, most=most: most)
        monkeypatch.setattr(proofs, "of", lambda system, found=at_most: found)
        assert kinds(try_scenario(colliding, program_of("esa"))) == expected
