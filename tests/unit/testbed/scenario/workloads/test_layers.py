"""The workload `layers`: tables of models, what a scenario makes of them, runs in virtual time over
every system that sums tensors, and what is said of wrong sums, models and expectations."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from system_runs import Run, ways

from agglab.hosts.workloads import InputKey
from agglab.testbed import systems
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.scenario.workloads import KINDS, reductions
from agglab.testbed.schema import models
from agglab.testbed.schema.models import ModelError
from agglab.testbed.systems.base import ALL_REDUCES
from agglab.testbed.systems.received_arrays import Received

DOCS = Path(__file__).parents[5] / "docs"
VALUES = {
    "alexnet": 61_100_840,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "inception3": 27_161_264,
    "bert": 109_482_240,
    "gpt2": 124_439_808,
    "lstm": 793_471 * 512 + 2 * (4 * (512 + 512 + 1) * 2048 + 2048 * 512),
    "dlrm": 33_762_577 * 16 + 475_985,
}
"""Parameters as the papers' architectures have them, and their implementations count them."""
GFLOP = {
    "alexnet": 1.43,
    "vgg16": 30.9,
    "vgg19": 39.3,
    "resnet50": 8.2,
    "resnet101": 15.6,
    "resnet152": 23.0,
    "inception3": 11.4,
}
"""Of a forward pass of one image, two operations for each multiplication: published counts."""

SYSTEMS = [
    name
    for name in systems.names()
    if "layers" in systems.find(name).abilities.workloads
    and "virtual" in systems.find(name).abilities.clocks
]
MODEL = """
title: small
samples: 2
layers:
- [words, 6000, 0, sparse]
- [wide, 3000, 4]
- [narrow, 40, 1]
- [out, 1000, 3]
"""
TEXT = """
name: tried
system: {system}
backend: virtual
topology: {{kind: rack, workers: 4}}
links: {{rate: 50mbit, queue: 4MB, loss: {loss}}}
switch: {{lanes: 64}}
workload: {{kind: layers, model: small.yaml, accelerator: p100, stands_for: 40gbit, scale: 2,
  bucket: 8kB, density: 20%, block: 64, rounds: 2, dtype: {dtype}, priorities: {priorities}}}
expect: {{exact: true}}
"""


def text(
    system: str, dtype: str = "float32", priorities: bool = False, loss: str = "0%", more: str = ""
) -> str:
    named = str(priorities).lower()
    return TEXT.format(system=system, dtype=dtype, priorities=named, loss=loss) + more


@pytest.fixture(autouse=True)
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(MODEL)
    return path


def as_predicted(metrics: dict[str, Any]) -> bool:
    """Of slots that are found by hashes, two chunks may want the same: nobody can predict that."""
    by_chance = metrics["links_unclear"].startswith("which chunks want the same slot")
    return by_chance or metrics["links_as_predicted"] is True


def test_models_have_the_parameters_of_their_papers() -> None:
    assert {name: models.read(name).values for name in models.names()} == VALUES


@pytest.mark.parametrize("name", GFLOP)
def test_models_need_the_operations_that_are_published(name: str) -> None:
    found = sum(layer.mflop for layer in models.read(name).layers) / 1e3
    assert found == pytest.approx(GFLOP[name], rel=0.01)


def test_inception_has_its_auxiliary_classifier_and_23_8_million_values_without() -> None:
    layers = models.read("inception3").layers
    main = [layer.values for layer in layers if not layer.name.startswith("auxiliary")]
    assert sum(main) == 23_834_568 == VALUES["inception3"] - 3_326_696


def test_embeddings_are_most_of_their_models() -> None:
    for name in models.names():
        model = models.read(name)
        share = sum(layer.values for layer in model.layers if layer.is_sparse) / model.values
        assert share > 0.9 if name in ("lstm", "dlrm") else share == 0


@pytest.mark.parametrize("name", ["alexnet", "vgg16", "resnet50", "resnet152", "inception3"])
def test_a_p100_trains_as_many_samples_as_were_measured(name: str) -> None:
    model = models.read(name)
    assert model.p100_samples_per_s is not None
    passes_s = sum(a + b for a, b in model.passes_s("p100"))
    assert passes_s == pytest.approx(64 / model.p100_samples_per_s)
    assert sum(a + b for a, b in model.passes_s("v100")) == pytest.approx(passes_s * 9.3 / 15.7)


def test_others_run_at_half_of_the_peak() -> None:
    model = models.read("bert")
    flop = model.samples * 3 * sum(layer.mflop for layer in model.layers) * 1e6
    assert model.computing_s("v100") == pytest.approx(flop / 7.85e12)


def test_the_documented_example_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "example.yaml"
    (example,) = re.findall(r"```\n(title: .*?)```", (DOCS / "scenarios.md").read_text(), re.DOTALL)
    path.write_text(example)
    found = models.read(str(path))
    assert [layer.is_sparse for layer in found.layers] == [True, False, False]
    assert (found.samples, found.p100_samples_per_s) == (64, 500)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("layers: [", "while parsing"),
        ("- 1", "not a mapping"),
        ("layer: []", "unknown key 'layer'"),
        ("samples: 1\nlayers: []", "layers: is not a list of 1 to"),
        ("samples: 1\nlayers: [[a, 1]]", r"layers\[0\]: is not \[name, values"),
        ("samples: 1\nlayers: [[a, 1, 1], [b, 0.5, 1]]", r"layers\[1\]: values"),
        ("samples: 1\nlayers: [[a, 1.5, 1]]", "not a whole number"),
        ("samples: 1\nlayers: [[a, 1, -1]]", "operations: -1"),
        ("samples: 1\nlayers: [[a, 1, .nan]]", "operations: nan"),
        ("samples: 1\nlayers: [[a, 1, 1, dense]]", "'dense' is not `sparse`"),
        ("samples: 1\nlayers: [[a, 1, 1], [a, 1, 1]]", "twice"),
        ("samples: 1\nlayers: [[a, 1, 0]]", "any operations"),
        ("samples: yes\nlayers: [[a, 1, 1]]", "samples: True"),
        ("samples: 1\np100_samples_per_s: 0\nlayers: [[a, 1, 1]]", "p100_samples_per_s: 0"),
    ],
)
def test_what_is_no_model_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(content)
    with pytest.raises(ModelError, match=message) as caught:
        models.read(str(path))
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def wrong(folder: Path, content: str, *settings: str) -> str:
    path = folder / "wrong.yaml"
    path.write_text(content)
    with pytest.raises(ScenarioError) as caught:
        load(path, settings)
    return str(caught.value)


def test_a_scenario_names_the_model_that_it_has_not(tmp_path: Path) -> None:
    told = wrong(tmp_path, text("switchml").replace("small.yaml", "resnet51"))
    assert "wrong.yaml:8" in told and "workload.model: there is no model resnet51" in told
    assert "did you mean" in told and "resnet50" in told


def test_a_scenario_says_what_is_wrong_in_its_model(tmp_path: Path, small: Path) -> None:
    small.write_text(MODEL.replace("3000", "many"))
    models.read.cache_clear()
    told = wrong(tmp_path, text("switchml"))
    assert f"workload.model: {small}: layers[1]: values: 'many'" in told


def test_keys_without_a_meaning_are_refused(tmp_path: Path) -> None:
    told = wrong(tmp_path, text("switchml"), "workload.elements=9")
    assert "workload.elements: has no meaning for layers" in told
    told = wrong(tmp_path, text("switchml"), "workload.kind=allreduce")
    assert "workload.scale: has no meaning for allreduce" in told


def test_values_and_times_are_scaled(tmp_path: Path) -> None:
    """Layers half as large; passes half as long, on links that have 1/800 of the rate that they
    stand for."""
    path = tmp_path / "tried.yaml"
    path.write_text(text("switchml"))
    (job,) = load(path).points[0].resolved.jobs
    assert job.work.sizes == (3000, 1500, 20, 500) and job.work.bucket == 1000
    whole_s = 2 * 3 * 8e6 / (9.3e12 / 2)
    assert job.work.computing_ns / 1e9 == pytest.approx(whole_s * 800 / 2, rel=1e-3)
    assert sum(job.work.backward_ns) == pytest.approx(2 * sum(job.work.forward_ns), rel=1e-3)
    assert job.work.link_bps == 50e6
    (own,) = load(path, ["workload.stands_for=auto"]).points[0].resolved.jobs
    assert own.work.computing_ns / 1e9 == pytest.approx(whole_s / 2, rel=1e-2)


def test_every_system_that_sums_tensors_does_layers() -> None:
    assert "layers" in ALL_REDUCES
    assert {"switchml", "ring", "ps", "omnireduce", "atp", "esa", "netrpc"} <= set(SYSTEMS)
    assert "layers" in systems.find("gloo").abilities.workloads


@pytest.mark.long(but=["switchml-True", "ring-False"])
@pytest.mark.parametrize("priorities", [False, True])
@pytest.mark.parametrize("system", SYSTEMS)
def test_sums_bytes_and_times_are_right(tried: Run, system: str, priorities: bool) -> None:
    code, metrics = tried(text(system, priorities=priorities))
    assert (code, metrics["reason"], metrics["findings"]) == (0, "", [])
    assert metrics["exact"] is as_predicted(metrics) is True
    assert metrics["wrong_results"] == 0 and metrics["accounts"]["balanced"] is True
    found = metrics["iteration"]
    assert found["buckets"] == (6 if priorities else 3)
    assert found["time_s"] == metrics["allreduce"]["time_s"]["median"] >= metrics["link_bound_s"]
    assert found["exposed_s"] == pytest.approx(found["time_s"] - found["computing_s"])
    assert found["efficiency"] == pytest.approx(found["computing_s"] / found["time_s"])
    assert any(way["bytes"] for way in ways(metrics).values())


@pytest.mark.long(but=["switchml-float32", "netrpc-int32"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_losses_change_no_sum(tried: Run, system: str, dtype: str) -> None:
    may = "expect.findings={may: [sent-again]}"
    code, metrics = tried(text(system, dtype, True, "2%"), may)
    assert (code, metrics["reason"], metrics["exact"]) == (0, "", True)
    assert metrics["wrong_results"] == 0 and metrics["totals"]["retransmitted"]
    assert as_predicted(metrics)


@pytest.mark.parametrize("system", ["switchml", "ring"])
def test_a_worker_that_dies_in_a_later_bucket_is_replaced(tried: Run, system: str) -> None:
    """Chunks count over all buckets: chunk 30 is in the second one."""
    at = "at_chunk: {round: 1, chunk: 30}, for: 100ms"
    fault = f"faults:\n- {{kind: worker_restart, worker: h2, {at}}}\n"
    code, metrics = tried(
        text(system, more=fault), "workload.on_failure=restart", "workload.give_up=1s"
    )
    assert (code, metrics["reason"], metrics["exact"]) == (0, "", True)
    assert metrics["restarts"] == 1 and metrics["wrong_results"] == 0


def test_a_chunk_behind_the_last_bucket_is_refused(tmp_path: Path) -> None:
    """5,020 values: 500 and 20 in one bucket, then 1,500, then 3,000: 9 + 24 + 47 chunks of 64."""
    fault = (
        "faults:\n- {kind: worker_pause, worker: h2, at_chunk: {round: 1, chunk: 80}, for: 1s}\n"
    )
    assert "a round of job1 has only 80 chunks" in wrong(tmp_path, text("switchml", more=fault))


def test_a_wrong_value_is_found_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "tried.yaml"
    path.write_text(text("ring"))
    resolved = load(path).points[0].resolved
    (job,) = resolved.jobs
    active, workload = resolved.whole(job), KINDS["layers"]
    right = np.zeros(job.elements, np.float32)
    for bucket, each in zip(job.work.buckets, reductions.active(active), strict=True):
        inputs = [each.job.work.inputs(InputKey(resolved.seed, 1, r, 0)) for r in range(4)]
        truth = resolved.system.right_results(resolved, each, None).truth(0, inputs)
        right[bucket.start : bucket.start + bucket.elements] = truth.values

    def verdict(result: np.ndarray | None):
        received = {rank: Received(right) for rank in range(3)}
        return workload.verdict(resolved, active, 0, {**received, 3: Received(result)})

    assert verdict(right).right
    for index in (0, 2999, 3000, 4500, job.elements - 1):
        result = right.copy()
        result[index] += 1
        found = verdict(result)
        assert (found.wrong_results, found.first.rank, found.first.index) == (1, 3, index)
    for result in (None, right[:-1], right[:3000], right[None, :], right.astype(np.float64)):
        assert verdict(result).wrong_results == job.elements


def test_bounds_are_those_of_the_buckets_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "tried.yaml"
    path.write_text(text("switchml"))
    resolved = load(path).points[0].resolved
    (job,) = resolved.jobs
    active = resolved.whole(job)
    own = [resolved.system.bounds(resolved, each).link_s for each in reductions.active(active)]
    found = reductions.bounds(resolved, active)
    assert found.link_s == pytest.approx(job.work.iteration_ns([s * 1e9 for s in own]) / 1e9)
    assert max(sum(own), job.work.computing_ns / 1e9) < found.link_s
    slower = replace(job, work=replace(job.work, backward_ns=(0, 0, 0, 0)))
    assert reductions.bounds(resolved, replace(active, job=slower)).link_s < found.link_s


SWEEP = """
compare: {one: {}, other: {workload: {bucket: 4kB}}}
sweep: {workload.density: [10%, 90%]}
"""


def test_a_ratio_is_expected_of_some_points(tried: Run) -> None:
    """Far fewer zeros make omnireduce slower at one point and not at the other."""
    metric, more = "expect.ratio.one.other.allreduce.time_s.median", text("omnireduce", more=SWEEP)
    assert tried(more, f"{metric}={{min: 0.1}}")[0] == 0
    code, metrics = tried(more, f"{metric}={{min: 50, at: 90%}}")
    assert code == 1 and "density 90%: expected ratio" in metrics["reason"]
    assert "density 10%" not in metrics["reason"] and "at 90%" in metrics["reason"]


def test_a_ratio_of_no_point_is_refused(tmp_path: Path) -> None:
    more = text("omnireduce", more=SWEEP)
    metric = "expect.ratio.one.other.allreduce.time_s.median"
    assert "no swept key has the value '80%'" in wrong(
        tmp_path, more, f"{metric}={{min: 1, at: 80%}}"
    )
    assert "is not a value" in wrong(tmp_path, more, f"{metric}={{at: 90%}}")
    assert "unknown key 'at'" in wrong(tmp_path, more, "expect.link_bound_ratio={max: 1, at: 90%}")
