"""The line that says what helps where the machine, not the network, was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.report.summary import summary
from agglab.testbed.results.side_by_side import comparison


def metrics(ok: bool, exact: bool, verdict: str) -> dict[str, Any]:
    time_s = {"median": 0.2, "min": 0.2, "max": 0.2}
    job = {
        "error": {"max_abs": None, "bound": None, "within": None},
        "rounds": 1,
        "restarts": 0,
        "allreduce": {"time_s": time_s},
        "link_bound_s": 0.1,
        "link_bound_ratio": 2.0,
    }
    counted = ("retransmitted", "injected_drops", "lost_down", "other_drops", "malformed", "forged")
    totals = dict.fromkeys(counted, 0)
    return {
        **job,
        "ok": ok,
        "exact": exact,
        "wrong_sums": 0 if exact else 3,
        "wrong_results": 0,
        "reason": None if ok else "expected link_bound_ratio <= 1.15, got 2",
        "totals": totals,
        "jobs": {"job": job},
        "failure": None,
        "findings": [{"kind": "slow", "text": "a round took 2 s", "numbers": {}}],
        "fidelity": {"verdict": verdict, "reasons": ["s1 used 95% of one processor"]},
    }


@pytest.mark.parametrize(
    ("case", "remedy"),
    [
        (metrics(False, True, "cpu-bound"), "larger packets"),
        (metrics(False, True, "starved"), "quieter machine"),
        (metrics(False, True, "network-bound"), None),
        (metrics(False, False, "cpu-bound"), None),
        (metrics(True, True, "cpu-bound"), None),
    ],
)
def test_a_missed_expectation_on_a_machine_too_small_has_a_remedy(
    case: dict[str, Any], remedy: str | None
) -> None:
    for text in (summary("x", case, Path("r")), summary("x", sweep(case), Path("r"))):
        lines = [line for line in text.splitlines() if line.startswith("  remedy")]
        assert len(lines) == (remedy is not None)
        assert remedy is None or remedy in lines[0]


def test_a_run_that_cannot_be_judged_is_neither_passed_nor_failed() -> None:
    case = {**metrics(False, True, "starved"), "verdict": "undecided", "reason": "h1 was late"}
    text = summary("x", case, Path("r"))
    assert text.startswith("UNDECIDED  x\n") and "  reason    h1 was late\n" in text
    assert "remedy" not in text  # which the reason names


@pytest.mark.parametrize(("sent", "said"), [(9, "decided in the round"), (0, "nothing crosses")])
def test_a_round_without_a_bound_says_whether_anything_was_sent(sent: int, said: str) -> None:
    case = metrics(True, True, "network-bound")
    unbounded = {"link_bound_s": 0.0, "link_bound_ratio": None}
    workers = {"0": {"bytes_sent": 0}, "1": {"bytes_sent": sent}}
    case = {**case, **unbounded, "jobs": {"job": {**case["jobs"]["job"], **unbounded}}}
    case["jobs"]["job"]["workers"] = workers
    (line,) = (t for t in summary("x", case, Path("r")).splitlines() if t.startswith("  time"))
    assert said in line
    assert "0.0000" not in summary("x", sweep(case), Path("r"))


@pytest.mark.parametrize("ok", [True, False])
def test_the_verdict_comes_first_and_a_failure_has_a_reason(ok: bool) -> None:
    case = metrics(ok, True, "network-bound")
    for text in (summary("x", case, Path("r")), summary("x", sweep(case), Path("r"))):
        lines = text.splitlines()
        assert lines[0].split(",")[0] == ("PASSED  x" if ok else "FAILED  x")
        reasons = [line for line in lines if line.startswith("  reason")]
        label = "a 1: " if "runs" in lines[0] else ""
        assert reasons == ([] if ok else [f"  reason    {label}{case['reason']}"])


@pytest.mark.parametrize(
    ("exact", "wrong_results", "said"),
    [(True, 0, "yes"), (True, 2, "NO"), (False, 0, "NO"), (None, 0, "-"), (None, 2, "NO")],
)
def test_a_table_of_runs_says_whether_each_is_right(
    exact: bool | None, wrong_results: int, said: str
) -> None:
    case = {**metrics(True, exact, "network-bound"), "wrong_results": wrong_results}
    _, head, *rows = summary("x", sweep(case), Path("r")).splitlines()
    at = head.index("exact")
    assert said in {row[at : at + 3].strip() for row in rows if row.startswith("  ")}


def test_findings_are_shown() -> None:
    text = summary("x", metrics(True, True, "waiting"), Path("r"))
    assert "  finding   slow: a round took 2 s" in text.splitlines()


def test_a_system_that_summed_nothing_is_named_in_the_first_lines() -> None:
    case = metrics(True, True, "waiting")
    counts = {"reduce_scatter_tensor_collective": 2, "reduce_scatter_tensor_collective_bytes": 5000}
    training = {
        "counts": counts,
        "reductions": 0,
        "reducing_s": 0.0,
        "step_s": {"median": None},
    }
    job = {**case["jobs"]["job"], "error": INTEGERS, "training": training}
    nothing = {"kind": "not-aggregated", "text": "the system summed nothing", "numbers": {}}
    case = {**case, "exact": None, "jobs": {"job": job}, "findings": [nothing, *case["findings"]]}
    lines = summary("x", case, Path("r")).splitlines()
    assert lines[:3] == [
        "PASSED  x",
        "  finding   not-aggregated: the system summed nothing",
        "  finding   slow: a round took 2 s",
    ]
    assert "  sums      no sum was compared with a right one" in lines
    assert "  calls     by Gloo (no all-reduce): reduce_scatter_tensor 2 times, 5 kB" in lines
    assert lines.count(lines[1]) == 1


def sweep(failing: dict[str, Any]) -> dict[str, Any]:
    good = metrics(True, failing["exact"], "network-bound")
    points = [{"settings": {"a": i}, "metrics": each} for i, each in enumerate((good, failing))]
    return {**failing, "points": points, "growth": {}}


INTEGERS = {"max_abs": None, "bound": None, "within": None}
BOUNDED = {"max_abs": 1e-7, "bound": 2e-7, "within": True}
ADDED = {"max_abs": None, "bound": None, "within": True}


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ([INTEGERS], "every integer sum is right, bit for bit"),
        (
            [BOUNDED],
            "every integer sum is right, bit for bit; "
            "no float that was received is wrong by more than 1e-07 (allowed 2e-07)",
        ),
        ([ADDED], "every float received is right, bit for bit"),
        ([INTEGERS, ADDED], "every integer sum and every float received are right, bit for bit"),
    ],
)
def test_it_says_what_was_judged(errors: list[dict[str, Any]], said: str) -> None:
    assert f"  sums      {said}" in summed(errors, 0, 0)


@pytest.mark.parametrize(
    ("errors", "sums", "said"),
    [
        ([INTEGERS], 3, "3 integer sums and 4 results are WRONG"),
        ([{**BOUNDED, "within": False}], 0, "4 results are WRONG"),
        ([{**ADDED, "within": False}], 4, "4 results are WRONG"),
    ],
)
def test_it_says_what_is_wrong(errors: list[dict[str, Any]], sums: int, said: str) -> None:
    assert f"  sums      {said}" in summed(errors, sums, 4)


def summed(errors: list[dict[str, Any]], sums: int, results: int) -> list[str]:
    case = metrics(sums + results == 0, sums + results == 0, "network-bound")
    jobs = {f"job{n}": {**case["jobs"]["job"], "error": error} for n, error in enumerate(errors)}
    counted = {"wrong_sums": sums, "wrong_results": results}
    case |= {"jobs": jobs, "fairness": {"jain": None}, **counted}
    return summary("x", case, Path("r")).splitlines()


@pytest.mark.parametrize(("seeds", "warned"), [(1, False), (2, True), (5, True), (6, False)])
def test_fewer_than_six_seeds_are_warned_of(seeds: int, warned: bool) -> None:
    good = metrics(True, True, "network-bound")
    points = [{"settings": {"seed": str(n)}, "metrics": good} for n in range(seeds)]
    text = summary("x", {**good, "points": points, "growth": {}}, Path("r"))
    said = f"  warning   {seeds} seeds have a range and no 95 % interval, for which at least 6 are"
    assert (said in text) == warned


def of_a_training(step_s: float | None) -> dict[str, Any]:
    """A run of a script whose round is the start of Python, most of it."""
    run = metrics(True, True, "waiting")
    training = {"reductions": 8, "reducing_s": 0.1, "step_s": {"median": step_s}}
    headline = {"metric": "training.step_s.median", "of": "step"}
    job = {**run["jobs"]["job"], "training": training, "headline": headline}
    return {**run, **job, "jobs": {"job": job}}


def test_a_training_shows_the_time_of_its_steps_first() -> None:
    (line,) = (t for t in summary("x", of_a_training(0.05), Path("r")).splitlines() if "time" in t)
    assert line.startswith("  time      0.05 s a step; 0.2000 s a round")
    alone = summary("x", of_a_training(None), Path("r"))
    assert "s a step" not in alone and "0.2000 s a round" in alone


def test_trainings_are_compared_by_their_steps() -> None:
    runs = {"slow": of_a_training(0.041), "fast": of_a_training(0.01)}
    both = comparison(runs, [])
    assert both["ratio"]["slow"]["fast"]["training"]["step_s"]["median"] == pytest.approx(4.1)
    head, slow, fast = summary("x", both, Path("r")).splitlines()[1:4]
    assert "time/step  x slow" in head and "bound" not in head
    assert "0.041 s    1.000" in slow and "0.01 s     0.244" in fast


def test_a_run_that_was_aborted_does_not_change_what_the_others_are_compared_by() -> None:
    runs = {"whole": of_a_training(0.01), "aborted": {"ok": False, "reason": "s1: ended"}}
    assert "time/step" in summary("x", comparison(runs, []), Path("r"))


def test_runs_of_unlike_workloads_are_compared_by_their_rounds() -> None:
    runs = {"training": of_a_training(0.01), "rounds": metrics(True, True, "waiting")}
    assert "time/round" in summary("x", comparison(runs, []), Path("r"))
