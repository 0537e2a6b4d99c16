"""Gradients of an embedding: which rows they have, and what is in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from agglab.hosts.workloads import Embedding, InputKey
from agglab.hosts.workloads.library_text import library_text

WORK = Embedding(16_384 * 64, "float32", 64, 512, "rank")
KEY = InputKey(7, 1, 0, 0)


def filled(values: np.ndarray, size: int) -> np.ndarray:
    return (values.reshape(-1, size) != 0).any(axis=1)


@pytest.mark.parametrize("row_order", ["rank", "hashed"])
def test_the_rows_of_a_batch_are_not_zero_and_all_others_are(row_order: str) -> None:
    work = replace(WORK, row_order=row_order)
    rows = work.batch_rows(KEY)
    assert rows.shape == (512,) and rows.min() >= 0 and rows.max() < 16_384
    assert np.flatnonzero(filled(work.inputs(KEY), 64)).tolist() == np.unique(rows).tolist()


def test_the_commonest_word_has_the_first_row_or_that_of_its_hash() -> None:
    text = library_text()
    commonest = int(np.argmax(np.bincount(text.numbers)))
    for row_order, row in (("rank", 0), ("hashed", int(text.keys[commonest]) % 16_384)):
        rows = replace(WORK, row_order=row_order, tokens=text.numbers.size).batch_rows(KEY)
        assert np.argmax(np.bincount(rows)) == row


@pytest.mark.parametrize(
    "row_order, own, union", [("rank", 0.034, 0.096), ("hashed", 0.045, 0.143)]
)
def test_few_blocks_are_filled(row_order: str, own: float, union: float) -> None:
    """Shares that were measured with another Python; texts differ a little."""
    work = replace(WORK, row_order=row_order)
    blocks = [filled(work.inputs(KEY._replace(rank=rank)), 256) for rank in range(4)]
    assert np.mean(blocks) == pytest.approx(own, rel=0.35)
    assert np.any(blocks, axis=0).mean() == pytest.approx(union, rel=0.35)


def test_a_word_that_comes_twice_has_the_sum_of_two_gradients() -> None:
    alone = Embedding(64, "int32", 64, 1, "rank")
    assert alone.rows == 1 and alone.batch_rows(KEY).tolist() == [0]
    two = replace(alone, tokens=2)
    values = two.inputs(KEY).astype(np.int64)
    first = alone.inputs(KEY).astype(np.int64)
    assert np.count_nonzero(values != first) == 64
    longer = replace(two, elements=10_000 * 64)
    if len(set(longer.batch_rows(KEY).tolist())) == 2:
        parts = longer.inputs(KEY).reshape(-1, 64)[longer.batch_rows(KEY)].astype(np.int64)
        assert np.array_equal(parts.sum(axis=0).astype(np.int32), values.astype(np.int32))


@pytest.mark.parametrize("start, count", [(0, 1), (63, 2), (64, 64), (100, 900), (999, 1), (5, 0)])
def test_parts_are_those_of_the_whole(start: int, count: int) -> None:
    """Also where the last row is short."""
    work = Embedding(1000, "float32", 64, 5, "hashed")
    whole = work.inputs(KEY)
    assert whole.size == 1000 and whole.flags.carray
    part = work.part(KEY, start, count)
    assert part.tobytes() == whole[start : start + count].tobytes()


def test_workers_and_rounds_have_other_words() -> None:
    batches = {
        WORK.batch_rows(KEY._replace(rank=rank, round=number)).tobytes()
        for rank in range(4)
        for number in range(4)
    }
    assert len(batches) == 16
