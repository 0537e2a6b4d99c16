"""The order of all-reduces with priorities, and the vote by which ranks agree on it. Without
processes, sockets and PyTorch."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.hosts.training.jobs import Job, Piece
from agglab.hosts.training.order import AHEAD, PIECE_ELEMENTS, Disagreement, Order, Vote

ELEMENTS = 1 << 20


def job(priority: int | None, pieces: int = 1, elements: int = PIECE_ELEMENTS) -> Job:
    piece = Piece(elements, "float32", lambda slot: None, lambda slot: None)
    return Job([piece] * pieces, lambda error: None, priority)


class Ranks:
    """The orders of all ranks, and the sequence in which they take the pieces of jobs, which are
    known by their numbers."""

    def __init__(self, workers: int) -> None:
        self.orders = [Order(workers, ELEMENTS) for _ in range(workers)]
        self.begun: list[list[Job]] = [[] for _ in range(workers)]
        self.taken: list[int] = []
        self.votes = self.overtakes = 0

    def begin(self, rank: int, job: Job) -> None:
        self.begun[rank].append(job)
        self.orders[rank].add(job)

    def begin_all(self, *jobs: tuple[int | None, int]) -> None:
        """At all ranks. jobs: the priority and the number of pieces of each."""
        for rank in range(len(self.orders)):
            for priority, pieces in jobs:
                self.begin(rank, job(priority, pieces))

    def step(self) -> None:
        """The next turn."""
        assert all(order._jobs for order in self.orders), "every rank has a job"
        turns = [[order.oldest()] for order in self.orders]
        oldest = turns[0][0]
        if oldest is not None and oldest.priority is not None:
            votes = [order.vote() for order in self.orders]
            sums = np.sum([vote.values() for vote in votes], axis=0, dtype=np.int32)
            turns = [[*vote.elected(sums)] for vote in votes]
            self.votes += 1
        taken = [
            [(begun.index(each), order.take(each)[1]) for each in turn if each is not None]
            for begun, order, turn in zip(self.begun, self.orders, turns, strict=True)
        ]
        assert taken[0] and taken == taken[:1] * len(taken), "all ranks take the same pieces"
        self.taken += [number for number, _ in taken[0]]
        self.overtakes += sum(overtakes for _, overtakes in taken[0])

    def run(self, turns: int) -> Sequence[int]:
        for _ in range(turns):
            self.step()
        return self.taken


def test_the_urgent_one_overtakes_after_one_piece() -> None:
    ranks = Ranks(3)
    ranks.begin_all((-5, 4))
    ranks.step()
    ranks.begin_all((-1, 2))
    assert ranks.run(5) == [0, 1, 1, 0, 0, 0]
    assert ranks.overtakes == 2 and ranks.votes == 6


def test_of_equal_priorities_the_older_is_first() -> None:
    ranks = Ranks(2)
    ranks.begin_all((0, 2), (0, 1), (1, 1), (1, 1))
    assert ranks.run(5) == [2, 3, 0, 0, 1]


def test_a_turn_has_small_pieces_of_as_many_values_as_one_large_piece() -> None:
    ranks = Ranks(2)
    for rank in range(2):
        for urgency, share in ((1, 4), (2, 2), (3, 4), (0, 8)):
            ranks.begin(rank, job(urgency, 1, PIECE_ELEMENTS // share))
    assert ranks.run(1) == [2, 1, 0] and ranks.votes == 1
    assert ranks.run(1) == [2, 1, 0, 3] and ranks.votes == 2


def test_without_priorities_nothing_overtakes_and_nobody_votes() -> None:
    ranks = Ranks(2)
    ranks.begin_all((None, 2), (None, 1), (None, 3))
    assert ranks.run(6) == [0, 0, 1, 2, 2, 2]
    assert ranks.votes == ranks.overtakes == 0


def test_an_all_reduce_without_priority_keeps_its_place() -> None:
    ranks = Ranks(2)
    ranks.begin_all((0, 1), (1, 1), (None, 2), (2, 1), (3, 1))
    assert ranks.run(6) == [1, 0, 2, 2, 4, 3]


def test_what_a_late_rank_has_not_begun_waits() -> None:
    ranks = Ranks(2)
    for each in (job(0, 3), job(9)):
        ranks.begin(0, each)
    ranks.begin(1, job(0, 3))
    ranks.step()
    ranks.begin(1, job(9))
    assert ranks.run(3) == [0, 1, 0, 0]


def test_a_vote_is_about_the_oldest() -> None:
    ranks = Ranks(2)
    ranks.begin_all(*[(0, 1)] * AHEAD, (1, 1))
    assert ranks.run(AHEAD + 1) == [0, AHEAD, *range(1, AHEAD)]


PLANS = st.lists(
    st.tuples(st.none() | st.integers(-3, 3), st.integers(1, 4)), min_size=1, max_size=12
)


@given(PLANS, st.integers(1, 4), st.randoms(use_true_random=False))
def test_all_ranks_agree_and_end_whenever_they_begin(
    plan: list[tuple[int | None, int]], workers: int, chance: random.Random
) -> None:
    ranks = Ranks(workers)
    left = [list(plan) for _ in range(workers)]
    sizes = [chance.choice([1, PIECE_ELEMENTS // 3, PIECE_ELEMENTS]) for _ in plan]
    while len(ranks.taken) < sum(pieces for _, pieces in plan):
        for rank, waiting in enumerate(left):
            must = not ranks.orders[rank]._jobs
            for _ in range(max(must, chance.randrange(len(waiting) + 1))):
                ranks.begin(rank, job(*waiting.pop(0), sizes[-len(waiting) - 1]))
        ranks.step()
    counted = [ranks.taken.count(number) for number in range(len(plan))]
    assert counted == [pieces for _, pieces in plan]


@pytest.mark.parametrize(
    "other", [job(1), job(2, 1, elements=11), job(2, 3)], ids=["priority", "elements", "pieces"]
)
@pytest.mark.parametrize("workers", [2, 3, 5, 1000])
def test_a_rank_that_disagrees_is_noticed(other: Job, workers: int) -> None:
    votes = [Vote([job(2)], workers, 4)] * (workers - 1) + [Vote([other], workers, 4)]
    sums = np.sum([vote.values() for vote in votes], axis=0, dtype=np.int64)
    assert sums.max() < 2**31
    for vote in votes:
        with pytest.raises(Disagreement, match="the ranks disagree"):
            vote.elected(sums)


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=6).filter(lambda n: len(set(n)) > 1))
def test_of_ranks_that_disagree_at_least_one_notices(priorities: list[int]) -> None:
    votes = [Vote([job(each)], len(priorities), 4) for each in priorities]
    sums = np.sum([vote.values() for vote in votes], axis=0, dtype=np.int64)
    noticed = 0
    for vote in votes:
        try:
            vote.elected(sums)
        except Disagreement:
            noticed += 1
    assert noticed


def test_a_rank_that_is_ahead_does_not_disagree() -> None:
    behind, ahead = Vote([job(2)], 2, 4), Vote([job(2), job(5)], 2, 4)
    sums = behind.values() + ahead.values()
    assert [vote.elected(sums) for vote in (behind, ahead)] == [[behind.jobs[0]], [ahead.jobs[0]]]


def test_sums_that_no_ranks_can_have_made_are_refused() -> None:
    vote = Vote([job(0)], 2, 4)
    with pytest.raises(Disagreement):
        vote.elected(np.zeros(8, np.int32))
