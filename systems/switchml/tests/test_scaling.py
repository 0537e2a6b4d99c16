"""Floats under a scaling factor, a number of bits and a rounding of the scenario's own: runs that
are judged by NumPy, what is counted, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from system_runs import DISORDER, Run, scenario_text

from agglab.systems.switchml import scaling
from agglab.systems.switchml.scaling import SwitchmlKeys
from agglab.testbed.scenario import ScenarioError, load

KEYS = (
    "scale_log2: 20",
    "scale_log2: 33",
    "scale_log2: -3",
    "scale_log2: 20, rounding: stochastic",
    "bits: 8",
    "bits: 4, rounding: stochastic",
    "rounding: stochastic",
)
RACKS = "kind: two_tier, racks: 2, workers: 4"


@pytest.mark.long(
    but=[
        "kind: rack, workers: 3-scale_log2: 20",
        "kind: two_tier, racks: 2, workers: 4-rounding: stochastic",
    ]
)
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("topology", ["kind: rack, workers: 3", RACKS])
def test_sums_are_right_to_the_bit_under_loss_and_disorder(
    tried: Run, keys: str, topology: str
) -> None:
    more = [f"switchml: {{{keys}}}", DISORDER]
    code, metrics = tried(scenario_text("switchml", topology, loss="1%", more=more))
    assert (code, metrics["exact"], metrics["wrong_results"]) == (0, True, 0)
    assert 0 < metrics["error"]["max_abs"] <= metrics["error"]["bound"]


@pytest.mark.parametrize(
    ("was", "told"),
    [
        ("scale_log2: 20", "scale_log2: 19"),
        ("bits: 8", "bits: 9"),
        ("rounding: stochastic", "rounding: nearest"),
        ("scale_log2: 10, rounding: stochastic", "scale_log2: 10"),
    ],
)
def test_workers_that_do_something_else_are_found(
    tried: Run, monkeypatch: pytest.MonkeyPatch, was: str, told: str
) -> None:
    """The truth is of the scenario, whatever the workers were told."""
    keys = {"scale_log2": "null", "bits": "null", "rounding": "nearest"}
    values = dict(part.split(": ") for part in told.split(", "))
    number = {name: int(v) for name, v in (keys | values).items() if v.lstrip("-").isdigit()}
    other = SwitchmlKeys(**number, rounding=(keys | values)["rounding"])
    honest = scaling.settings
    monkeypatch.setattr(scaling, "settings", lambda _, *more: honest(other, *more))
    code, metrics = tried(scenario_text("switchml", more=[f"switchml: {{{was}}}"]))
    assert (code, metrics["exact"]) == (1, False)


def test_another_seed_rounds_otherwise_and_the_same_seed_alike(tried: Run) -> None:
    def error(seed: int) -> float:
        more = ["switchml: {bits: 6, rounding: stochastic}"]
        return tried(scenario_text("switchml", more=more), f"seed={seed}")[1]["error"]["max_abs"]

    assert error(1) == error(1)
    keys = {
        scaling.noise_key(seed, job, rank) for seed in (1, 2) for job in (0, 1) for rank in (0, 1)
    }
    assert len(keys) == 8 and 0 not in keys


def test_each_doubling_of_the_factor_halves_the_error_until_values_are_cut(tried: Run) -> None:
    def ran(scale_log2: int) -> dict:
        text = scenario_text("switchml", more=[f"switchml: {{scale_log2: {scale_log2}}}"])
        return tried(text)[1]

    coarse, fine, cut = ran(8), ran(12), ran(36)
    assert 10 < coarse["error"]["max_abs"] / fine["error"]["max_abs"] < 24
    assert sum(worker["clipped"] for worker in fine["workers"].values()) == 0
    assert 0 < fine["workers"]["0"]["vanished"] < coarse["workers"]["0"]["vanished"]
    assert cut["workers"]["0"]["clipped"] > 0 and cut["error"]["max_abs"] > 1


def test_survivors_keep_the_factor(tried: Run) -> None:
    more = [
        "switchml: {scale_log2: 16, rounding: stochastic}",
        "faults: [{kind: worker_crash, worker: h2, at: 5ms}]",
    ]
    workload = "on_failure: survivors, give_up: 200ms"
    code, metrics = tried(scenario_text("switchml", workload=workload, more=more))
    assert (code, metrics["exact"], metrics["lost"]) == (0, True, 1)


@pytest.mark.parametrize(
    ("keys", "dtype", "more", "expected"),
    [
        ("bits: 8", "int32", "", "int32 has no scaling factor"),
        ("scale_log2: 3", "float16", "", "float16 has no scaling factor"),
        (
            "bits: 8",
            "float32",
            "worker: 'agglab.hosts:AllReducer'",
            "a worker of your own does not know",
        ),
        ("bits: 1", "float32", "", "switchml.bits"),
        ("scale_log2: 65", "float32", "", "switchml.scale_log2"),
        ("rounding: up", "float32", "", "switchml.rounding"),
    ],
)
def test_what_has_no_scaling_factor_is_refused(
    tmp_path: Path, keys: str, dtype: str, more: str, expected: str
) -> None:
    path = tmp_path / "s.yaml"
    workload = "kind: allreduce" + (more and f", {more}")
    path.write_text(
        scenario_text("switchml", workload=workload, dtype=dtype, more=[f"switchml: {{{keys}}}"])
    )
    with pytest.raises(ScenarioError, match=expected):
        load(path)


def test_a_section_that_says_nothing_changes_nothing(tried: Run) -> None:
    plain = tried(scenario_text("switchml"))[1]
    assert tried(scenario_text("switchml", more=["switchml: {}"]))[1]["jobs"] == plain["jobs"]


def test_the_truth_of_a_block_is_that_of_its_place() -> None:
    """Noise depends on the place in the tensor, not in the block."""
    own = SwitchmlKeys(bits=5, rounding="stochastic")
    values = np.linspace(-1, 1, 64, dtype=np.float32)
    whole = scaling._truth(own, 8, [3, 5], 0, [values, values])
    part = scaling._truth(own, 8, [3, 5], 16, [values[16:32], values[16:32]])
    assert whole.sums is not None and part.sums is not None
    assert np.array_equal(whole.sums[16:32], part.sums)
