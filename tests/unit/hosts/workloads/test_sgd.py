"""The network of `sgd`: its gradients against differences of its loss, its data, and the steps of a
training at a worker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from agglab.hosts.training_steps import TrainingSteps
from agglab.hosts.workloads import InputKey, Sgd, description, read

MS = 1_000_000
WORK = Sgd("float32", 3, 5, 7, 4, 6, 0.5, 2 * MS)
KEY = InputKey(1, 2, 0, 0)


def test_a_gradient_is_the_slope_of_the_loss() -> None:
    model, examples = WORK.first_model() + 0.01, WORK.inputs(KEY)
    found = WORK.gradient(model, examples)
    for place in range(WORK.parameters):
        step = np.zeros(WORK.parameters)
        step[place] = 1e-5
        above, below = (WORK.judged(model + sign * step, examples)[0] for sign in (1, -1))
        assert found[place] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-6)


def test_the_mean_gradient_of_workers_is_that_of_all_their_examples() -> None:
    model = WORK.first_model()
    parts = [WORK.inputs(KEY._replace(rank=rank)) for rank in range(3)]
    summed = sum(WORK.gradient(model, part).astype(np.float64) for part in parts)
    alone = WORK.gradient(model, np.concatenate(parts)).astype(np.float64)
    assert WORK.moved(model, summed, 3) == pytest.approx(model - 0.5 * alone, abs=1e-6)


def test_a_network_learns_its_classes() -> None:
    work = replace(WORK, steps=200, features=16, hidden=32, batch=32)
    examples, held_out = work.inputs(KEY), work.held_out(KEY.seed, KEY.job)
    model = work.first_model()
    before = work.judged(model, held_out)
    for step in range(work.steps):
        model = work.moved(model, work.gradient(model, work.examples_of(step, examples)), 1)
    loss, accuracy = work.judged(model, held_out)
    assert before[1] < 0.5 < 0.8 < accuracy and loss < before[0] / 2


def test_nobody_has_the_examples_by_which_models_are_judged() -> None:
    own = {bytes(each) for rank in range(4) for each in WORK.inputs(KEY._replace(rank=rank))["x"]}
    assert not own & {bytes(each) for each in WORK.held_out(1, 2)["x"]}


def test_steps_follow_one_another_and_each_begins_from_the_sums_before() -> None:
    examples, out = WORK.inputs(KEY), WORK.room(WORK.inputs(KEY))
    steps = TrainingSteps(WORK, 2, 10 * MS, examples, out)
    model, now_ns = WORK.first_model(), 10 * MS
    for step in range(WORK.steps):
        bucket = steps.next
        assert bucket == WORK.buckets[step]
        assert steps.due_ns == now_ns + 2 * MS
        assert steps.elements_left == [WORK.parameters] * (WORK.steps - step)
        values = steps.values(bucket)
        assert values.base is not None and np.shares_memory(values, out)
        own = WORK.gradient(model, WORK.examples_of(step, examples))
        assert values.tobytes() == own.tobytes()
        values += 0.25
        now_ns += 5 * MS
        steps.summed(now_ns)
        model = WORK.moved(model, own + np.float32(0.25), 2)
    assert steps.next is None and steps.elements_left == [] and steps.due_ns == now_ns


@pytest.mark.parametrize(
    ("field", "value"), [("steps", 0), ("hidden", 1.5), ("batch", True), ("rate", "x")]
)
def test_what_is_no_training_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        read({**description(WORK), field: value})
