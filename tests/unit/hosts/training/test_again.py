"""Process groups that a script destroys and makes again."""

from __future__ import annotations

import threading
from typing import Any

import needs
import pytest

needs.require("PyTorch")

import torch  # noqa: E402
from torch import distributed as dist  # noqa: E402
from training_ranks import Together, run_ranks  # noqa: E402

CYCLES = 20


def again(rank: int, workers: int) -> int:
    for _ in range(CYCLES):
        dist.init_process_group("agglab")
        pair = dist.new_group([0, 1])
        for dtype in (torch.float32, torch.float64):
            x = torch.full((5,), rank + 1.0, dtype=dtype)
            dist.all_reduce(x)
            assert x.tolist() == [6.0] * 5
        if rank < 2:
            dist.all_reduce(x, group=pair)
            assert x.tolist() == [12.0] * 5
        dist.destroy_process_group()
    return threading.active_count()


@pytest.mark.timeout(300)
def test_a_group_that_was_destroyed_can_be_made_again() -> None:
    ranks = run_ranks(again, workers=3, patience_s=240)
    assert [rank.error for rank in ranks] == [""] * 3
    assert {rank.reductions for rank in ranks} == {CYCLES}
    assert {rank.counts["allreduce.dtype"] for rank in ranks} == {CYCLES}
    assert max(rank.result for rank in ranks) < CYCLES  # no threads are left of each group


def ahead(rank: int, workers: int) -> Any:
    """Rank 1 makes its second group before rank 0 has destroyed the first."""
    dist.init_process_group("agglab")
    if rank == 1:
        dist.destroy_process_group()
        dist.init_process_group("agglab")
    else:
        dist.group.WORLD.get_group_store().wait([f"agglab/{1 - rank}"])
        until_added(rank)
        dist.destroy_process_group()
        dist.init_process_group("agglab")
    x = torch.ones(3)
    dist.all_reduce(x)
    return x.tolist()


def until_added(rank: int) -> None:
    """Until the other rank has begun its second group, by the count of its groups in the store."""
    store = dist.group.WORLD.get_group_store()
    while store.add(f"agglab/{1 - rank}", 0) < 2:
        pass


def test_a_rank_may_be_ahead_in_making_it_again() -> None:
    ranks = run_ranks(ahead, reduces=Together(2).of)
    assert [rank.error for rank in ranks] == ["", ""]
    assert [rank.result for rank in ranks] == [[2.0] * 3] * 2
