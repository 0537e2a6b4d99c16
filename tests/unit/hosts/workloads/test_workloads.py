"""What workers bring to a round: every kind as agents are told it, and what is no workload."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from agglab.hosts.workloads import (
    KINDS,
    AsyncSgd,
    Calls,
    Dense,
    Embedding,
    InputKey,
    Layers,
    PushPull,
    Sgd,
    Sparse,
    Torch,
    Work,
    description,
    read,
)
from agglab.hosts.workloads.library_text import library_text

WORKS: tuple[Work, ...] = (
    Dense(1000, "int32"),
    Dense(1000, "float32"),
    Sparse(1000, "float32", 4, 0.3, 16, "random"),
    PushPull(1000, "int32", "zipf", 1.1, 500, 2),
    PushPull(1000, "float32", "python", 1.0, 1, 0),
    Embedding(1000, "float32", 8, 5, "hashed"),
    Calls(1000, "int32", "wordcount", 4),
    Calls(1000, "int32", "lock", 4),
    AsyncSgd(64, 4, 32, 4, 100, 1000, 20, 0),
    Layers("float32", (9, 900, 90), (1, 2, 3), (4, 5, 6), (1,), 0.5, 8, "none", 4, 100, True, 1e6),
    Sgd("float32", 4, 8, 8, 3, 2, 0.5, 1000),
)
SCRIPT = Torch(1000, "train.py", ("--epochs", "2"))
"""Has no inputs: what it brings, its script computes."""
DENSE: dict[str, Any] = {"kind": "allreduce", "elements": 9, "dtype": "int32"}


def test_every_kind_is_tried_here() -> None:
    assert {work.kind for work in (*WORKS, SCRIPT)} == set(KINDS)


@pytest.mark.parametrize("work", [*WORKS, SCRIPT])
def test_what_agents_are_told_says_all_of_it(work: Work) -> None:
    assert read(json.loads(json.dumps(description(work)))) == work


@pytest.mark.parametrize("work", WORKS)
def test_inputs_follow_from_their_key_and_differ_with_each_part_of_it(work: Work) -> None:
    key = InputKey(1, 2, 3, 4)
    inputs = work.inputs(key)
    assert inputs.tobytes() == work.inputs(key).tobytes()
    assert inputs.ndim == 1 and inputs.flags.carray and inputs.size <= work.elements
    for field in key._fields:
        other = work.inputs(key._replace(**{field: 9}))
        assert inputs.tobytes() != other.tobytes(), field


@pytest.mark.parametrize("work", WORKS)
def test_there_is_room_for_a_result(work: Work) -> None:
    inputs = work.inputs(InputKey(1, 2, 3, 4))
    room = work.room(inputs)
    assert room.flags.carray and np.unique(room).size == 1
    if work.in_place:
        assert (room.dtype, room.shape) == (inputs.dtype, inputs.shape)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "not an object"),
        ({**DENSE, "kind": "dense"}, "kind: 'dense' is none of allreduce, sparse_allreduce, "),
        ({**DENSE, "elements": -1}, "elements: -1 is not a whole number of 0 or more"),
        ({**DENSE, "elements": True}, "elements: True is not a whole number of 0 or more"),
        ({**DENSE, "dtype": "float64"}, "dtype: 'float64' is none of int32, float32"),
        ({**DENSE, "block": 3}, "allreduce: .*block"),
        ({"kind": "allreduce", "elements": 3}, "allreduce: .*dtype"),
    ],
)
def test_what_is_no_workload_is_refused_in_one_line(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        read(given)
    assert "\n" not in str(error.value)


def test_words_are_counted_by_their_keys() -> None:
    work = Calls(500, "int32", "wordcount", 2)
    key = InputKey(1, 1, 0, 0)
    rows, part = work.inputs(key), work.part(key).tolist()
    keys = library_text().keys
    assert {int(r["key"]): int(r["value"]) for r in rows} == Counter(int(keys[n]) for n in part)
    assert (np.diff(rows["key"].astype(object)) > 0).all()


def test_parts_of_a_text_follow_one_another_and_begin_again() -> None:
    work = Calls(200_000, "int32", "wordcount", 2)
    parts = [work.part(InputKey(1, 1, rank, round)) for round in range(2) for rank in range(2)]
    numbers, whole = library_text().numbers, np.concatenate(parts)
    assert whole.size > numbers.size
    places = np.flatnonzero(numbers == whole[0]).tolist()
    around = (np.resize(np.roll(numbers, -begin), whole.size) for begin in places)
    assert sum(np.array_equal(each, whole) for each in around) == 1


def test_keys_ascend_and_are_drawn_with_a_chance_that_falls_with_their_rank() -> None:
    work = PushPull(200_000, "int32", "zipf", 1.2, 1000, 0)
    key = InputKey(1, 2, 3, 4)
    pushed = work.inputs(key)["key"]
    assert np.all(pushed[1:] > pushed[:-1])
    _, counts = np.unique(work.sampled_keys(key), return_counts=True)
    counts = np.sort(counts)[::-1]
    weights = np.arange(1, 1001) ** -1.2
    wanted = 200_000 * weights / weights.sum()
    assert np.all(np.abs(counts[:20] - wanted[:20]) < 6 * np.sqrt(wanted[:20]))
    assert pushed.size <= 1000 == work.keys_most


def test_workers_share_keys_and_no_values_and_drift_changes_the_keys() -> None:
    work = PushPull(5_000, "int32", "zipf", 1.2, 1000, 2)
    rounds = [work.inputs(InputKey(1, 2, 3, number)) for number in range(4)]
    other = work.inputs(InputKey(1, 2, 5, 0))
    shared = np.intersect1d(rounds[0]["key"], other["key"])
    assert shared.size > 0.6 * other.size
    at_one, at_other = (each["value"][np.isin(each["key"], shared)] for each in (rounds[0], other))
    assert np.count_nonzero(at_one == at_other) < 3
    assert np.intersect1d(rounds[0]["key"], rounds[1]["key"]).size > 300
    assert np.intersect1d(rounds[1]["key"], rounds[2]["key"]).size == 0
