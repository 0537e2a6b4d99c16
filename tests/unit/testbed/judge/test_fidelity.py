"""The verdict on what was measured, from evidence made by hand."""

from typing import Any

import pytest

from agglab.testbed.base.processor_time import NOTHING, Usage, sample
from agglab.testbed.judge.fidelity import Evidence, judge, short_of_processors


def evidence(
    rate_share: float = 0.5,
    *,
    cpu: dict[str, float] | None = None,
    wait: dict[str, float] | None = None,
    busy: float = 1.0,
    stolen: float = 0.0,
    other_drops: int = 0,
    **more: Any,
) -> Evidence:
    usage = Usage(10.0, cpu or {"s1": 1.0}, wait or {}, busy, stolen)
    return Evidence(rate_share, usage, 2, 0, other_drops, **more)


@pytest.mark.parametrize(
    ("case", "verdict", "reason"),
    [
        (evidence(rate_share=0.97), "network-bound", "carried 97% of its rate"),
        (evidence(rate_share=0.97, cpu={"s1": 9.9}), "network-bound", "carried 97%"),
        (evidence(cpu={"s1": 8.5, "worker 0": 1}), "cpu-bound", "s1 used 85% of one processor"),
        (evidence(cpu={"a": 6.0, "b": 6.0, "c": 6.0}), "cpu-bound", "90% of all 2 processors"),
        (
            evidence(wait={"worker 3": 4.0}),
            "starved",
            "worker 3 waited for a processor for 40% of the time",
        ),
        (evidence(stolen=3.0), "starved", "the hypervisor took 15%"),
        (
            evidence(rate_share=0.88, wait={"a": 0.4, "b": 0.3}),
            "starved",
            "a waited for a processor for 4% of the time",
        ),
        (evidence(wait={"a": 1.4}), "waiting", "the busiest link carried 50%"),
        (evidence(other_drops=4), "waiting", "4 packets were lost although nothing dropped"),
        (evidence(rate_share=0.97, sent=100, unexplained=50), "network-bound", "carried 97%"),
    ],
)
def test_verdicts(case: Evidence, verdict: str, reason: str) -> None:
    found = judge(case)
    assert found["verdict"] == verdict
    assert reason in " ".join(found["reasons"])


@pytest.mark.parametrize(
    ("waited_for", "more", "reason"),
    [
        (
            "timers",
            {"sent": 100, "retransmitted": 60, "unexplained": 50},
            "50 packets that were not lost were sent",
        ),
        (
            "timers",
            {"sent": 100, "unexplained": 50, "wait": {"h1": 4.0}},
            "50 packets that were not lost were sent",
        ),
        ("faults", {"faults": ("worker_pause",), "losses": 3}, "because of faults: worker_pause"),
        ("window", {"window_share": 0.25, "losses": 3}, "the window fills only 25%"),
        ("losses", {"losses": 3, "retransmitted": 9, "delayed": True}, "3 frames were lost, and 9"),
        ("brevity", {"brief": True, "delayed": True}, "before their packets have filled"),
        ("delay", {"delayed": True}, "the delay of the links"),
        ("unknown", {}, "no counter shows why"),
    ],
)
def test_where_neither_link_nor_processor_was_busy_something_was_waited_for(
    waited_for: str, more: dict[str, Any], reason: str
) -> None:
    found = judge(evidence(**more))
    assert (found["verdict"], found["waited_for"]) == ("waiting", waited_for)
    assert reason in found["reasons"][0]


def test_timers_may_be_late_before_the_machine_is_the_limit() -> None:
    assert short_of_processors(evidence(wait={"h1": 0.4})) == ""
    assert short_of_processors(evidence(wait={"h1": 0.6})) == (
        "h1 waited for a processor for 6% of the time"
    )
    assert short_of_processors(Evidence(0.5, NOTHING, 2, 0, 0)) == ""


def test_the_deciding_reason_comes_first() -> None:
    reasons = judge(evidence(cpu={"s1": 9.0}, wait={"s1": 5.0}))["reasons"]
    assert "s1 used 90%" in reasons[0]
    assert "waited for a processor for 50%" in reasons[1]


def test_usage_is_read_from_proc(tmp_path) -> None:
    (tmp_path / "stat").write_text("cpu  100 10 50 1000 5 3 2 40 0 0\ncpu0 ...\n")
    for pid, thread, times in [("7", "7", "3000000000 5 9"), ("7", "8", "1000000000 2000000000 9")]:
        folder = tmp_path / pid / "task" / thread
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(times + "\n")
    found = sample({"s1": [7], "gone": [8]}, 12.5, tmp_path)
    assert found.cpu_s == {"s1": 4.0, "gone": 0.0}
    assert found.wait_s == {"s1": 2.0, "gone": 0.0}
    assert (found.busy_s, found.stolen_s) == (pytest.approx(2.05), pytest.approx(0.4))
    spent = found.since(found)
    assert (spent.wall_s, spent.busy_s, spent.cpu_s["s1"]) == (0.0, 0.0, 0.0)
    assert (spent + found).cpu_s == found.cpu_s
    assert (NOTHING + found) == found


def test_usage_of_a_host_is_that_of_all_its_agents(tmp_path) -> None:
    (tmp_path / "stat").write_text("cpu  100 10 50 1000 5 3 2 40 0 0\n")
    for pid, times in [("7", "3000000000 5000000000 9"), ("9", "1000000000 2000000000 9")]:
        folder = tmp_path / pid / "task" / pid
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(times + "\n")
    found = sample({"h1": [7, 9], "h2": [9]}, 12.5, tmp_path)
    assert found.cpu_s == {"h1": 4.0, "h2": 1.0}
    assert found.wait_s == {"h1": 5.0, "h2": 2.0}
