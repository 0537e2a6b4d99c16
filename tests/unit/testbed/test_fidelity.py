"""The verdict on what was measured, from evidence made by hand."""

import pytest

from testbed.fidelity import Evidence, judge
from testbed.usage import NOTHING, Usage, sample


def evidence(
    rate_share: float = 0.5,
    cpu: dict[str, float] | None = None,
    wait: dict[str, float] | None = None,
    busy: float = 1.0,
    stolen: float = 0.0,
    other_drops: int = 0,
) -> Evidence:
    usage = Usage(10.0, cpu or {"s1": 1.0}, wait or {}, busy, stolen)
    return Evidence(rate_share, usage, 2, 0, other_drops)


@pytest.mark.parametrize(
    ("case", "verdict", "reason"),
    [
        (evidence(rate_share=0.97), "network-bound", "carried 97% of its rate"),
        (evidence(rate_share=0.97, cpu={"s1": 9.9}), "network-bound", "carried 97%"),
        (evidence(cpu={"s1": 8.5, "worker 0": 1}), "cpu-bound", "s1 used 85% of one processor"),
        (evidence(cpu={"a": 6.0, "b": 6.0, "c": 6.0}), "cpu-bound", "90% of all 2 processors"),
        (evidence(wait={"worker 3": 4.0}), "starved", "worker 3 waited 40% of the time"),
        (evidence(stolen=3.0), "starved", "the hypervisor took 15%"),
        (evidence(), "network-bound", "no process was short of processor time"),
        (evidence(other_drops=4), "network-bound", "4 packets were lost that nobody dropped"),
    ],
)
def test_verdicts(case: Evidence, verdict: str, reason: str) -> None:
    found = judge(case)
    assert found["verdict"] == verdict
    assert reason in " ".join(found["reasons"])


def test_the_deciding_reason_comes_first() -> None:
    reasons = judge(evidence(cpu={"s1": 9.0}, wait={"s1": 5.0}))["reasons"]
    assert "s1 used 90%" in reasons[0]
    assert "waited 50%" in reasons[1]


def test_usage_is_read_from_proc(tmp_path) -> None:
    (tmp_path / "stat").write_text("cpu  100 10 50 1000 5 3 2 40 0 0\ncpu0 ...\n")
    for pid, thread, times in [("7", "7", "3000000000 5 9"), ("7", "8", "1000000000 2000000000 9")]:
        folder = tmp_path / pid / "task" / thread
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(times + "\n")
    found = sample({"s1": 7, "gone": 8}, 12.5, tmp_path)
    assert found.cpu_s == {"s1": 4.0, "gone": 0.0}
    assert found.wait_s == {"s1": 2.0, "gone": 0.0}
    assert (found.busy_s, found.stolen_s) == (pytest.approx(2.05), pytest.approx(0.4))
    spent = found.since(found)
    assert (spent.wall_s, spent.busy_s, spent.cpu_s["s1"]) == (0.0, 0.0, 0.0)
    assert (spent + found).cpu_s == found.cpu_s
    assert (NOTHING + found) == found
