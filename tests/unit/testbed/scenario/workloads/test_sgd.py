"""The workload `sgd` in virtual time over every system that sums tensors: all learn the same, what
is wrong is found at its step, and what is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from system_runs import Run

from agglab.hosts.workloads import InputKey, Sgd
from agglab.testbed import systems
from agglab.testbed.scenario import load
from agglab.testbed.scenario.workloads import KINDS, reductions
from agglab.testbed.systems.received_arrays import Received

SYSTEMS = [
    name
    for name in systems.names()
    if "sgd" in systems.find(name).abilities.workloads
    and "virtual" in systems.find(name).abilities.clocks
]
TEXT = """
name: tried
seed: 3
system: {system}
backend: virtual
topology: {{kind: rack, workers: 4, servers: 1}}
links: {{rate: 50mbit, queue: 4MB, loss: {loss}}}
workload: {{kind: sgd, features: 16, hidden: 24, classes: 6, batch: 8, learning_rate: 0.5,
  steps: {steps}, compute: 2ms, rounds: {rounds}, goal: 60%{more}}}
expect: {{exact: true}}
"""


def text(
    system: str = "switchml", loss: str = "0%", steps: int = 12, rounds: int = 2, more: str = ""
) -> str:
    return TEXT.format(system=system, loss=loss, steps=steps, rounds=rounds, more=more)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("loss", ["0%", "2%"])
def test_every_system_learns_the_same(tried: Run, system: str, loss: str) -> None:
    code, metrics = tried(text(system, loss))
    assert (code, metrics["exact"], metrics["wrong_results"]) == (0, True, 0)
    found, plain = metrics["training"], trained_alone(metrics)
    assert found["loss"]["last"] == pytest.approx(plain[0], rel=1e-4)
    assert found["accuracy"] == pytest.approx(plain[1], abs=0.003)
    assert found["step_s"]["median"] >= 0.002 and metrics["link_bound_ratio"] >= 1


def trained_alone(metrics: dict[str, Any]) -> tuple[float, float]:
    """Mean loss and accuracy of the rounds' last models, each of all examples at one place."""
    work = Sgd("float32", 12, 16, 24, 6, 8, 0.5, 0)
    ends = []
    for number in range(metrics["rounds"]):
        inputs = [work.inputs(InputKey(3, 1, rank, number)) for rank in range(4)]
        model = work.first_model()
        for step in range(work.steps):
            examples = np.concatenate([work.examples_of(step, own) for own in inputs])
            model = work.moved(model, work.gradient(model, examples), 1)
        ends.append(work.judged(model, work.held_out(3, 1)))
    return float(np.mean([end[0] for end in ends])), float(np.mean([end[1] for end in ends]))


def test_steps_compute_one_after_the_other(tried: Run) -> None:
    slow = tried(text(), "workload.compute=12ms")[1]
    fast = tried(text())[1]
    more = slow["allreduce"]["time_s"]["median"] - fast["allreduce"]["time_s"]["median"]
    assert more == pytest.approx(12 * 0.010, rel=1e-6)


def test_the_goal_is_reached_once_and_told_when(tried: Run) -> None:
    found = tried(text(steps=30, rounds=1))[1]["training"]
    reached = [at_s for at_s, share in found["accuracy_curve"] if share >= 0.6]
    assert found["goal_s"] == reached[0] > 0
    assert [at_s for at_s, _ in found["curve"]] == [at_s for at_s, _ in found["accuracy_curve"]]
    assert found["loss"]["first"] > found["loss"]["last"] == found["curve"][-1][1]
    assert tried(text(), "workload.goal=99.9%")[1]["training"]["goal_s"] is None


@pytest.mark.parametrize("on_failure", ["restart", "survivors"])
def test_training_goes_on_when_a_worker_dies(tried: Run, on_failure: str) -> None:
    more = f", on_failure: {on_failure}, give_up: 200ms"
    restart = "worker_restart" if on_failure == "restart" else "worker_crash"
    fault = f"faults: [{{kind: {restart}, worker: h2, at: 40ms}}]\n"
    code, metrics = tried(text(more=more) + fault)
    assert (code, metrics["exact"], metrics["restarts"]) == (0, True, 1)
    assert metrics["lost"] == (on_failure == "survivors")


def test_half_precision_learns_too(tried: Run) -> None:
    found = tried(text(), "workload.dtype=float16", "switch.lanes=16")[1]
    assert found["exact"] and found["training"]["loss"]["last"] < found["training"]["loss"]["first"]


def test_a_wrong_sum_is_found_at_its_step(tmp_path: Path) -> None:
    path = tmp_path / "tried.yaml"
    path.write_text(text("ring", steps=4))
    resolved = load(path).points[0].resolved
    (job,) = resolved.jobs
    work, active, workload = job.work, resolved.whole(job), KINDS["sgd"]
    assert isinstance(work, Sgd)
    right, model = np.zeros(job.elements, np.float32), work.first_model()
    inputs = [work.inputs(InputKey(resolved.seed, 1, rank, 0)) for rank in range(4)]
    for bucket, each in zip(work.buckets, reductions.active(active), strict=True):
        parts = [work.gradient(model, work.examples_of(bucket.first, own)) for own in inputs]
        total = (
            resolved.system.right_results(resolved, each, None)
            .truth(0, parts)
            .values.astype(np.float32)
        )
        right[bucket.start : bucket.start + bucket.elements] = total
        model = work.moved(model, total, 4)

    def verdict(*results: np.ndarray | None):
        received = dict(enumerate(map(Received, results)))
        return workload.verdict(resolved, active, 0, received)

    assert verdict(right, right, right, right).right
    for index in (0, work.parameters - 1, work.parameters, job.elements - 1):
        wrong = right.copy()
        wrong[index] += 1
        everybody = verdict(wrong, wrong, wrong, wrong)
        assert everybody.first is not None and everybody.first.index == index
        assert not everybody.right
        alone = verdict(right, wrong, right, right)
        assert (alone.first.rank, alone.first.index, alone.right) == (1, index, False)
    for gone in (None, right[:-1], right.astype(np.float64)):
        assert not verdict(right, right, right, gone).right
    assert not verdict().right


def test_workers_have_to_receive_the_same_bits(tmp_path: Path) -> None:
    """A result that is near enough to the sum, and another than that of the other workers, makes
    another model."""
    path = tmp_path / "tried.yaml"
    path.write_text(text("switchml", steps=1))
    resolved = load(path).points[0].resolved
    (job,) = resolved.jobs
    work, active = job.work, resolved.whole(job)
    assert isinstance(work, Sgd)
    model = work.first_model()
    inputs = [work.inputs(InputKey(resolved.seed, 1, rank, 0)) for rank in range(4)]
    parts = [work.gradient(model, work.examples_of(0, own)) for own in inputs]
    (each,) = reductions.active(active)
    truth = resolved.system.right_results(resolved, each, None).truth(0, parts)
    result = truth.values.astype(np.float32)
    assert truth.allowed is not None
    place = int(np.argmax(truth.allowed / np.spacing(np.abs(result))))
    other = result.copy()
    other[place] = np.nextafter(result[place], np.float32(1))
    assert abs(other[place] - truth.values[place]) < truth.allowed[place]

    def verdict(*results: np.ndarray):
        received = {rank: Received(one, truth.sums) for rank, one in enumerate(results)}
        return KINDS["sgd"].verdict(resolved, active, 0, received)

    assert verdict(result, result, result, result).right
    assert verdict(other, other, other, other).right
    found = verdict(result, result, other, result)
    assert not found.right and (found.first.rank, found.first.index) == (2, place)
