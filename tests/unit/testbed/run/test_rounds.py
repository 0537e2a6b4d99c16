"""What is measured while rounds are under way, and when they are judged."""

from __future__ import annotations

from typing import Any

import pytest
from run_parts import FakeBackend

from agglab.testbed.base.processor_time import Usage
from agglab.testbed.run.outcome import JobResult, Round
from agglab.testbed.run.rounds import Meter
from agglab.testbed.run.verifier import NOTHING, Attempt, Verifier


class Metered(FakeBackend):
    def at(self, now: int, carried: int) -> None:
        """The time, and how much a link has carried. Processors are always busy."""
        self.now, self.carried = now, {"h1->s1": carried}
        self.used = Usage(now, {"h1": now / 2}, {}, 0.0, 0.0)


@pytest.fixture
def backend() -> Metered:
    return Metered()


def spans(meter: Meter) -> list[tuple[int, int, int]]:
    return [(span.begin_ns, span.end_ns, span.carried["h1->s1"]) for span in meter.spans]


def test_a_span_is_the_time_in_which_rounds_of_any_job_are_under_way(backend: Metered) -> None:
    meter = Meter(backend)
    for now, carried, what in (
        (10, 100, meter.begin),
        (12, 110, meter.begin),
        (15, 150, lambda: meter.over(False)),
        (18, 190, lambda: meter.over(False)),
        (30, 200, meter.begin),
        (34, 260, lambda: meter.over(False)),
    ):
        backend.at(now, carried)
        what()
    assert spans(meter) == [(10, 18, 90), (30, 34, 60)]
    assert (meter.usage.wall_s, meter.usage.cpu_s["h1"]) == (12, 6)


def test_links_carry_what_a_broken_round_left_until_the_next_is_over(backend: Metered) -> None:
    meter = Meter(backend)
    for now, carried, what in (
        (1, 10, meter.begin),
        (2, 20, lambda: meter.over(True)),
        (5, 50, meter.begin),
        (6, 60, lambda: meter.over(True)),
        (9, 90, meter.finish),
        (11, 99, meter.finish),
    ):
        backend.at(now, carried)
        what()
    assert spans(meter) == [(1, 9, 80)]
    assert meter.usage.wall_s == 2, "only the attempts"


class Told(Verifier):
    """Says when results are taken, and judges nothing."""

    def __init__(self, said: list[str], at_once: bool) -> None:
        nothing: Any = None
        super().__init__(nothing, nothing, lambda event, **content: said.append(event), at_once)
        self.said = said

    def _collect(self, job: Any, number: int, members: Any, over: bool) -> Any:
        self.said.append(f"collect {number}")
        return Attempt(job, number, dict.fromkeys(members, NOTHING))

    def _verdict(self, attempt: Attempt) -> Any:
        return type("V", (), {"exact": True, "wrong_sums": 0, "wrong_results": 0})()

    def _digest(self, attempt: Attempt) -> str:
        return f"digest {attempt.number}"


def done(number: int) -> Round:
    return Round(number, (0, 1), {}, 0, 1)


@pytest.mark.parametrize("at_once", [True, False])
def test_rounds_are_judged_at_once_or_when_the_run_is_over(at_once: bool) -> None:
    said: list[str] = []
    result: Any = JobResult(type("T", (), {"name": "job1"})())
    verifier = Told(said, at_once)
    verifier.broken_off(result, 0, [1])
    verifier.broken_off(result, 0, [])  # nobody has received anything
    verifier.round_over(result, done(0))
    verifier.round_over(result, done(1))
    taken = ["collect 0", "verified_broken_off", "collect 0", "collect 0", "verified", "collect 1"]
    # What the next attempt would replace is taken at once, whenever it is judged.
    later = ["collect 0", "collect 0", "verified_broken_off", "collect 0", "verified", "collect 1"]
    assert said == ([*taken, "verified"] if at_once else ["collect 0", "collect 0"])
    verifier.finish()
    verifier.finish()
    assert said == [*(taken if at_once else later), "verified"]
    assert len(result.verdicts) == 2 and [number for number, _ in result.broken_off] == [0]
