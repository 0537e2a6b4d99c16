"""The sentences with which a report begins, from values given by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agglab.testbed.report.answers import MEANINGS, did_it_hold, next_runs, what_limited, where_lost
from agglab.testbed.report.expected import Judged, judged
from agglab.testbed.report.losses import Loss, losses
from agglab.testbed.results.recorded_scenario import RecordedScenario

WAY = {"seen": 100, "dropped": 0, "queue_drops": 0, "packets": 100}


def of_links(**ways: dict[str, int]) -> dict[str, Any]:
    links = {name: {f"{name}->s1": {**WAY, **way}} for name, way in ways.items()}
    return {"links": links, "switches": {}, "jobs": {}}


@pytest.mark.parametrize("verdict", MEANINGS)
def test_the_verdict_is_the_runs_own(verdict: str) -> None:
    told = what_limited({"fidelity": {"verdict": verdict, "reasons": []}})
    assert told == f"{verdict}: {MEANINGS[verdict]}."


def test_expectations_that_hold_are_counted() -> None:
    expected = [Judged("exact", "= true", "true", True), Judged("rounds", "= 3", "2", False)]
    assert did_it_hold({"ok": True}, expected).startswith("Yes: 1 of 2 expectations hold")
    nothing_compared = did_it_hold({"ok": True, "exact": None}, expected)
    assert nothing_compared.endswith("hold, and no sum was compared with a right one.")
    assert did_it_hold({"ok": False, "reason": "it broke"}, expected) == "No: it broke."


def test_a_run_that_cannot_be_judged_says_so_and_how_it_can() -> None:
    metrics = {"ok": False, "verdict": "undecided", "reason": "h1 was late"}
    assert did_it_hold(metrics, []) == "It cannot be said: h1 was late."
    metrics |= {"fidelity": {"verdict": "starved", "waited_for": None}}
    (first, *others) = next_runs("x", metrics, RecordedScenario("links: {rate: 100mbit}\n"))
    assert first.command == f"{RUN} backend=virtual"
    assert "the program alone is judged" in first.why
    assert first.command not in [each.command for each in others]


def test_the_worst_place_comes_first_and_is_named() -> None:
    found = losses(of_links(a={"dropped": 1}, b={"queue_drops": 7}, c={"dropped": 3}))
    assert [(loss.where, loss.packets, loss.of) for loss in found] == [
        ("b->s1", 7, 107),
        ("c->s1", 3, 100),
        ("a->s1", 1, 100),
    ]
    told = where_lost(found)
    assert "11 packets were lost in 3 places, most of them at b->s1: 7 (6.54% of" in told
    assert where_lost([Loss("h1->s1", 2, None, "why")]).endswith("at h1->s1: 2, why.")


def test_a_machine_that_was_too_slow_is_given_links_of_half_the_rate() -> None:
    asked = RecordedScenario("links: {rate: 100mbit}\nworkload: {rounds: 99}\n")
    metrics = {"fidelity": {"verdict": "cpu-bound", "waited_for": None}, "rounds": 99}
    commands = [each.command for each in next_runs("x", metrics, asked)]
    assert f"{RUN} links.rate=50mbit" in commands


RUN = "./agglab run x --set"
HUNG = {"failure": {"reason": "switch s1 ..."}, "exact": False, "rounds": 0}
WRONG = {"wrong_sums": 3, "wrong_results": 0, "exact": False, "rounds": 1}
DONE = {"wrong_sums": 0, "exact": True, "rounds": 1}
OWN, LOSSY = "switch: {program: a/own.p4}\n", "links: {loss: 1%}\n"
VIRTUAL = "backend: virtual\n"


@pytest.mark.parametrize(
    ("metrics", "asked", "proposed"),
    [
        (HUNG, "", ["backend=virtual"]),
        (HUNG, VIRTUAL, []),
        (HUNG, VIRTUAL + LOSSY, ["links.loss=0"]),
        (HUNG, OWN + LOSSY, ["switch.program=auto", "links.loss=0", "backend=virtual"]),
        (WRONG, VIRTUAL + OWN, ["switch.program=auto"]),
        (WRONG, VIRTUAL + LOSSY, ["links.loss=0", "links.loss=0"]),
        (WRONG | HUNG, VIRTUAL + OWN, ["switch.program=auto", "switch.program=auto"]),
        (DONE, VIRTUAL + OWN, []),
        (DONE, LOSSY, ["links.loss=0"]),
        (DONE, "workload: {rounds: 3}", ["workload.rounds=20"]),
        (HUNG, "workload: {rounds: 3}", ["backend=virtual"]),
    ],
)
def test_what_to_run_next_follows_from_what_failed(metrics, asked: str, proposed) -> None:
    found = next_runs("x", {"fidelity": {}, **metrics}, RecordedScenario(asked))
    assert [each.command.removeprefix(f"{RUN} ") for each in found] == proposed
    failed = "failure" in metrics or ("wrong_sums" in metrics and metrics["wrong_sums"])
    assert all(("find out whether" in each.why) <= bool(failed) for each in found)


def test_a_round_that_hangs_has_no_wrong_sums() -> None:
    (first, *_) = next_runs("x", {"fidelity": {}, **HUNG}, RecordedScenario(OWN))
    assert first.why == (
        "a round did not end: find out whether it also fails to end without your own program"
    )


@pytest.mark.parametrize(
    ("asks", "kinds", "holds"),
    [
        ("[sent-again]", ["sent-again"], True),
        ("[sent-again]", [], False),
        ("[sent-again]", ["sent-again", "slow-round"], False),
        ("{may: [sent-again]}", [], True),
        ("{may: [sent-again]}", ["sent-again"], True),
        ("{may: [sent-again]}", ["slow-round"], False),
    ],
)
def test_findings_hold_as_the_run_was_judged(asks: str, kinds: list[str], holds: bool) -> None:
    metrics = {"totals": {}, "findings": [{"kind": kind} for kind in kinds]}
    (found,) = judged(RecordedScenario(f"expect: {{findings: {asks}}}"), metrics)
    assert found.holds is holds
