"""What a scenario with a deadline may ask for, and what its results must be (partial-sums.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from system_runs import DISORDER, Run, is_clean, scenario_text

from agglab.hosts.endpoint import PRESENCE
from agglab.testbed.base.exit_codes import FAILED
from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.scenario.workloads.correctness import Verdict, verify_sums
from agglab.testbed.systems.base import ResolvedScenario
from agglab.testbed.systems.received_arrays import Received

SCENARIO = """
name: partial
topology: {topology}
backend: virtual
switch: {{lanes: 2, slots: 2}}
switchml: {{deadline: 1ms{more}}}
workload: {{elements: 9, dtype: {dtype}{work}}}
expect: {{exact: true}}
"""
RACK = "{kind: rack, workers: 3}"


def resolved(
    tmp_path: Path, dtype: str = "float32", more: str = "", work: str = "", topology: str = RACK
) -> ResolvedScenario:
    path = tmp_path / "partial.yaml"
    path.write_text(SCENARIO.format(dtype=dtype, more=more, work=work, topology=topology))
    return load(path).points[0].resolved


def judged(
    tmp_path: Path, dtype: str, change: tuple[str, int, int] | None = None, missing: bool = False
) -> Verdict:
    """Three workers have the sums of a round in which some are missing; the second has `change`:
    (array, index, what is added)."""
    scenario = resolved(tmp_path, dtype)
    source = np.random.default_rng(7)
    inputs = [(source.normal(size=9) * 100).astype(dtype) for _ in range(3)]
    presence = np.array([0b111, 0b101, 0b110, 0b001, 0b111], np.uint64)
    out, sums = np.zeros(9, dtype), np.zeros(9, np.int32)
    bits = 29
    for i in range(9):
        there = [x for rank, x in enumerate(inputs) if int(presence[i // 2]) >> rank & 1]
        if dtype == "int32":
            out[i] = sum(int(x[i]) for x in there)
            continue
        column = [j for j in range(9) if j // 2 % 2 == i // 2 % 2]
        largest = max(np.frexp(x[j])[1] for x in inputs for j in column)
        scale = 2.0 ** (bits - int(largest))
        sums[i] = sum(round(float(x[i]) * scale) for x in there)
        out[i] = np.float32(sums[i] / scale * 3 / len(there))
    arrays = [{"result": out.copy(), "sums": sums.copy(), PRESENCE: presence.copy()} for _ in "abc"]
    if change:
        name, index, add = change
        arrays[1][name][index] += np.array(add, arrays[1][name].dtype)
    received = [
        Received(a["result"], a["sums"], more={} if missing else {PRESENCE: a[PRESENCE]})
        for a in arrays
    ]

    def part(start: int, count: int) -> list[np.ndarray]:
        return [x[start : start + count] for x in inputs]

    return verify_sums(scenario, scenario.whole(scenario.jobs[0]), part, received)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_sums_of_those_present_are_right(tmp_path: Path, dtype: str) -> None:
    verdict = judged(tmp_path, dtype)
    assert verdict.right and verdict.first is None


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("index", [0, 3, 8])
def test_one_wrong_bit_is_found(tmp_path: Path, dtype: str, index: int) -> None:
    verdict = judged(tmp_path, dtype, ("result", index, 1))
    assert not verdict.right and verdict.first is not None
    assert (verdict.first.rank, verdict.first.index) == (1, index)


def test_a_wrong_integer_is_found(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "float32", ("sums", 5, 1))
    assert verdict.wrong_sums == 1


def test_another_claim_of_who_is_in_a_sum_is_found(tmp_path: Path) -> None:
    """The second worker says of chunk 1 that the second worker is in it, too."""
    verdict = judged(tmp_path, "float32", (PRESENCE, 1, 2))
    assert verdict.first is not None and not verdict.right
    assert (verdict.first.what, verdict.first.rank) == ("presence", 1)
    assert verdict.first.expected == "chunk 1 with workers 101"
    assert verdict.first.got == "workers 111"


def test_results_that_do_not_say_who_is_in_them_are_wrong(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "float32", missing=True)
    assert verdict.first is not None and verdict.first.what == "presence" and not verdict.exact


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"more": ", wire_bits: 8"}, "a deadline needs sums of 32-bit lanes"),
        ({"dtype": "float16"}, "dtype: float16 cannot be used with a deadline"),
        ({"dtype": "bfloat16"}, "dtype: bfloat16 cannot be used with a deadline"),
        ({"work": ", worker: 'agglab.hosts:AllReducer'"}, "does not know what a deadline changes"),
        ({"topology": "{kind: two_tier, racks: 2, workers: 2}"}, "hosts are all at one switch"),
    ],
)
def test_what_a_deadline_excludes(tmp_path: Path, asked: dict[str, str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        resolved(tmp_path, **asked)


SLOW = """
faults:
- {kind: worker_slow, worker: h2, at: 0s, for: 1min, delay: 9ms}
"""


@pytest.mark.long
@pytest.mark.parametrize("sets", [2, 8])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_under_loss_and_disorder(tried: Run, dtype: str, sets: int) -> None:
    lines = [f"switchml: {{deadline: 1ms, sets: {sets}}}", DISORDER]
    code, metrics = tried(scenario_text("switchml", loss="3%", dtype=dtype, more=lines))
    assert (code, metrics["exact"], metrics["wrong_results"]) == (0, True, 0)
    assert metrics["switches"]["s1"]["packets"]["closed_early"]
    assert metrics["accounts"]["balanced"] and not metrics["restarts"]


@pytest.mark.long(but=[""])
@pytest.mark.parametrize(
    "more", ["", ", scale_log2: 3", ", rounding: stochastic, bits: 12", ", sets: 2"]
)
def test_a_slow_worker_and_every_rule_for_numbers(tried: Run, more: str) -> None:
    """Every packet and every byte has an explanation, too."""
    lines = [f"switchml: {{deadline: 2ms{more}}}", SLOW]
    code, metrics = tried(scenario_text("switchml", switch="slots: 8", more=lines))
    assert is_clean(code, metrics)
    workers = metrics["jobs"]["job1"]["workers"]
    assert workers["1"]["skipped"] and workers["0"]["partial"] == workers["3"]["partial"] > 0


@pytest.mark.long
@pytest.mark.parametrize(
    "workload",
    [
        "kind: sgd, features: 8, hidden: 32, steps: 4, batch: 4",
        "kind: layers, model: resnet50, scale: 4000, accelerator: v100",
        "kind: sparse_allreduce, density: 10%",
    ],
)
def test_every_workload(tried: Run, workload: str) -> None:
    text = scenario_text("switchml", more=["switchml: {deadline: 2ms}", SLOW])
    whole = "kind: allreduce, elements: 10000"
    kept = ", elements: 10000" if "sparse" in workload else ""
    code, metrics = tried(text.replace(whole, workload + kept))
    assert (code, metrics["exact"], metrics["wrong_results"]) == (0, True, 0)
    assert metrics["switches"]["s1"]["packets"]["closed_early"]


@pytest.mark.long
def test_without_a_straggler_nobody_is_missing(tried: Run) -> None:
    code, metrics = tried(scenario_text("switchml", more=["switchml: {deadline: 20ms}"]))
    assert is_clean(code, metrics)
    packets = metrics["switches"]["s1"]["packets"]
    assert packets["complete"] and not packets["closed_early"]
    assert metrics["totals"]["retransmitted"] == 0


@pytest.mark.long
def test_a_switch_that_does_not_wait_for_the_deadline_is_found(tried: Run, tmp_path: Path) -> None:
    """Its sums are right, as they say who is in them."""
    program = tmp_path / "hasty.p4"
    source = (REPOSITORY / "p4/switchml_deadline.p4").read_text()
    program.write_text(f"#undef DEADLINE\n#define DEADLINE 0\n{source}")
    lines = ["switchml: {deadline: 4ms}", SLOW]
    code, metrics = tried(scenario_text("switchml", switch="slots: 8", more=lines))
    assert is_clean(code, metrics)
    text = scenario_text("switchml", switch=f"slots: 8, program: {program}", more=lines)
    code, metrics = tried(text)
    assert (code, metrics["exact"], metrics["wrong_results"]) == (FAILED, True, 0)
    (finding,) = metrics["findings"]
    assert finding["kind"] == "too-early" and "deadline of 4 ms and 8 slots" in finding["text"]


ATTACKED = """
jobs:
- {name: other, workers: h3}
- {name: victim, workers: "h[124]"}
faults:
- {kind: worker_slow, worker: h2, at: 0s, for: 1min, delay: 9ms}
- {kind: attack, host: h5, at: 1ms, frames: 350, for: 20ms}
- {kind: attack, host: h3, at: 1ms, frames: 350, for: 20ms}
"""


@pytest.mark.long
def test_forged_packets_change_nothing(tried: Run) -> None:
    """Each attacker sends a series of 35 frames ten times."""
    lines = ["switchml: {deadline: 2ms}", ATTACKED]
    text = scenario_text("switchml", "kind: rack, workers: 5", switch="slots: 16", more=lines)
    code, metrics = tried(text)
    assert (code, metrics["reason"]) == (0, "")
    assert (metrics["exact"], metrics["wrong_results"]) == (True, 0)
    assert (metrics["totals"]["malformed"], metrics["totals"]["forged"]) == (140, 400)
    assert metrics["switches"]["s1"]["packets"]["closed_early"]


@pytest.mark.long
def test_the_worker_that_is_gone_is_named(tried: Run) -> None:
    """The others are at most as many chunks ahead of it as there are sets; then they wait."""
    gone = "faults:\n- {kind: link_down, link: h2-s1, at: 2ms, for: 1min}"
    lines = ["switchml: {deadline: 1ms, sets: 2}", gone]
    given_up = "kind: allreduce, give_up: 2s"
    text = scenario_text("switchml", workload=given_up, switch="slots: 8", more=lines)
    code, metrics = tried(text)
    assert code == 1
    assert "h2: worker 1 never delivered" in metrics["reason"]
    assert metrics["switches"]["s1"]["packets"]["held"]
