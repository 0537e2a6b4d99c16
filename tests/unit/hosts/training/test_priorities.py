"""Priorities in PyTorch's backend: what overtakes, counted in reductions, and that all ranks hear
of an error."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest

needs.require("PyTorch")

import torch  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from torch import distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: E402
from training_ranks import Rank, Together, run_ranks  # noqa: E402

from agglab.hosts.agreement import Agreement  # noqa: E402
from agglab.hosts.training import priority, report  # noqa: E402
from agglab.hosts.training.jobs import Job  # noqa: E402
from agglab.hosts.training.order import AHEAD, PIECE_ELEMENTS, Order  # noqa: E402

ELEMENTS = 1000
VOTE = 2 * AHEAD
WORKERS = 2


class Gated:
    """Reductions of which the first waits until the scripts of all ranks have begun everything,
    which they say by a pipe. `sizes` has the number of values of each reduction, by rank."""

    def __init__(self, folder: Path) -> None:
        self.pipes = [folder / str(rank) for rank in range(WORKERS)]
        for pipe in self.pipes:
            os.mkfifo(pipe)
        self.sizes: list[list[int]] = [[] for _ in range(WORKERS)]
        self._together = Together(WORKERS)

    def of(self, rank: int) -> Callable[[NDArray, NDArray], None]:
        reduce = self._together.of(rank)

        def gated(values: NDArray, out: NDArray, agreement: Agreement) -> None:
            if not self.sizes[rank]:
                self.pipes[rank].read_text()  # until the script has closed its end
            self.sizes[rank].append(values.size)
            reduce(values, out, agreement)

        return gated

    def run(self, script: Any) -> list[Rank]:
        folder = {"GATES": str(self.pipes[0].parent)}
        return run_ranks(script, WORKERS, self.of, ELEMENTS, environment=folder)


def open_gate(rank: int) -> None:
    (Path(os.environ["GATES"]) / str(rank)).write_text("begun")


def begin(elements: int, urgency: int) -> tuple[Any, Any]:
    values = torch.arange(elements, dtype=torch.float32)
    with priority(urgency):
        return dist.all_reduce(values, async_op=True), values


def check(works: Any) -> None:
    for work, values in works:
        work.wait()
        assert torch.equal(values, WORKERS * torch.arange(values.numel()).float())


def urgent_after_long(rank: int, workers: int) -> None:
    dist.init_process_group("agglab")
    works = [begin(3500, -3), begin(200, -2), begin(300, -1)]
    open_gate(rank)
    check(works[::-1])


def test_an_urgent_one_waits_for_at_most_one_piece(tmp_path: Path) -> None:
    gated = Gated(tmp_path)
    ranks = gated.run(urgent_after_long)
    assert [rank.error for rank in ranks] == [""] * WORKERS
    rest = [VOTE, 1000, VOTE, 1000, VOTE, 500]
    # At the first vote both ranks had begun one, two or all of them.
    assert gated.sizes[0] == gated.sizes[1]
    assert gated.sizes[0] in (
        [VOTE, 1000, VOTE, 300, 200, *rest],
        [VOTE, 200, VOTE, 300, VOTE, 1000, *rest],
        [VOTE, 300, 200, VOTE, 1000, *rest],
    )
    votes = gated.sizes[0].count(VOTE)
    for rank in ranks:
        assert rank.counts["priority.votes"] == votes and rank.counts["priority.overtakes"] == 2


def late(rank: int, workers: int) -> None:
    dist.init_process_group("agglab")
    long, more = begin(3500, -3), [begin(300, -1)] if rank == 0 else []
    open_gate(rank)
    check([long])
    check(more or [begin(300, -1)])


def test_what_one_rank_has_not_begun_overtakes_at_none(tmp_path: Path) -> None:
    gated = Gated(tmp_path)
    ranks = gated.run(late)
    assert [rank.error for rank in ranks] == [""] * WORKERS
    expected = [VOTE, 1000, VOTE, 1000, VOTE, 1000, VOTE, 500, VOTE, 300]
    assert gated.sizes == [expected] * WORKERS


def in_order(rank: int, workers: int) -> None:
    dist.init_process_group("agglab")
    works = []
    for elements in (3500, 200, 300):
        values = torch.arange(elements, dtype=torch.float32)
        works.append((dist.all_reduce(values, async_op=True), values))
    open_gate(rank)
    check(works[::-1])


def test_without_priorities_the_order_is_that_of_the_script(tmp_path: Path) -> None:
    gated = Gated(tmp_path)
    ranks = gated.run(in_order)
    assert gated.sizes[0] == gated.sizes[1] == [1000, 1000, 1000, 500, 200, 300]
    assert not any("priority" in name for name in ranks[0].counts)


def large(rank: int, workers: int) -> None:
    dist.init_process_group("agglab")
    check([begin(PIECE_ELEMENTS + 1, 0)])


def test_a_large_tensor_is_cut_whatever_a_reduction_may_hold() -> None:
    ranks = run_ranks(large, elements=1 << 20)
    assert [rank.reductions for rank in ranks] == [4, 4]


def two_groups(rank: int, workers: int) -> None:
    dist.init_process_group("agglab")
    other, works = dist.new_group(list(range(workers))), []
    for turn in range(12):
        values = torch.arange(1200 + turn, dtype=torch.float32)
        with priority(turn % 5):
            group = other if turn % 2 else dist.group.WORLD
            works.append((dist.all_reduce(values, group=group, async_op=True), values))
        dist.barrier(group=other)
    check(works[::-1])


def test_two_groups_share_the_order() -> None:
    ranks = run_ranks(two_groups, elements=ELEMENTS)
    assert [rank.error for rank in ranks] == [""] * WORKERS
    assert ranks[0].digest == ranks[1].digest
    assert ranks[0].counts["priority.votes"] == ranks[1].counts["priority.votes"] >= 12


def raised(call: Callable[[], object]) -> str:
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


def disagrees(rank: int, workers: int) -> str:
    dist.init_process_group("agglab")
    values = torch.ones(10)
    with priority(rank):
        return raised(lambda: dist.all_reduce(values))


def test_ranks_that_disagree_about_a_priority_sum_nothing() -> None:
    ranks = run_ranks(disagrees)
    for rank in ranks:
        assert rank.result.startswith("the ranks disagree about an all-reduce")
        assert rank.reductions == 1  # the vote


def one_without(rank: int, workers: int) -> str:
    dist.init_process_group("agglab")
    values = torch.ones(int(os.environ["VALUES"]), dtype=getattr(torch, os.environ["DTYPE"]))
    if rank == 0:
        return raised(lambda: dist.all_reduce(values))
    with priority(0):
        return raised(lambda: dist.all_reduce(values))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("values", [10, VOTE])
def test_a_priority_at_one_rank_alone_is_an_error_at_all(values: int, dtype: str) -> None:
    ranks = run_ranks(one_without, environment={"VALUES": str(values), "DTYPE": dtype})
    assert [rank.result for rank in ranks] == ["the workers do not reduce alike"] * WORKERS


@pytest.mark.parametrize("most", [1, 2, 3, VOTE - 1, VOTE, VOTE + 1, 1000])
def test_no_all_reduce_looks_like_a_vote(most: int) -> None:
    from agglab.hosts.training import tensors

    vote = Order(WORKERS, most)
    vote.add(Job([], lambda error: None, 0))
    for values in (1, 2, 3, VOTE - 1, VOTE, VOTE + 1, most + VOTE, 3 * most, 3 * VOTE):
        parts = torch.arange(values, dtype=torch.int32).split(5)
        made = tensors.pieces(parts, most, 1, ("float32", "int32"))
        seen = [np.empty(piece.elements, np.int32) for piece in made]
        for piece, slot in zip(made, seen, strict=True):
            piece.fill(slot)
        assert np.array_equal(np.concatenate(seen), np.arange(values))
        assert {len(slot) for slot in seen} <= {*range(1, most + 1)} - {vote.vote().values().size}


def one_value(rank: int, workers: int) -> str:
    dist.init_process_group("agglab")
    with priority(0):
        return raised(lambda: dist.all_reduce(torch.ones(2)))


def test_ranks_that_have_no_room_for_a_vote_are_told_so() -> None:
    ranks = run_ranks(one_value, elements=1)
    assert all("raise workload.elements" in rank.result for rank in ranks)


def dies(rank: int, workers: int) -> list[str]:
    dist.init_process_group("agglab")
    with priority(0):
        dist.all_reduce(torch.ones(5))
        if rank == 1:
            os._exit(3)
        flying = [begin(3000, n)[0] for n in range(5)]
        told = [raised(work.wait) for work in flying[::-1]]
        return [*told, raised(lambda: dist.all_reduce(torch.ones(5)))]


def test_all_that_wait_hear_of_a_rank_that_died() -> None:
    together = Together(2)
    ranks = run_ranks(dies, reduces=together.of, on_death=together.miss_a_worker)
    assert ranks[0].result == ["a worker is missing"] * 6
    assert ranks[0].agent_error == "a worker is missing"


def test_a_priority_is_a_whole_number_and_ends_with_its_block() -> None:
    from agglab.hosts.training.priorities import current

    for value in (1.5, True, 2**31, None):
        with pytest.raises(ValueError, match="not a whole number of 32 bits"), priority(value):  # type: ignore[arg-type]
            pass
    seen: list[int | None] = []
    with priority(3):
        with priority(-4):
            seen.append(current())
        seen.append(current())
        thread = threading.Thread(target=lambda: seen.append(current()))
        thread.start()
        thread.join()
    assert [*seen, current()] == [-4, 3, None, None]


def layers() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(*[nn.Linear(20, 20) for _ in range(6)])


def by_layer(rank: int, workers: int) -> Any:
    from agglab.hosts.training.hook import LayerOrder, by_layer_hook

    dist.init_process_group("agglab")
    model = layers()
    whole = DDP(model, bucket_cap_mb=0.001)
    if os.environ["PRIORITIES"] == "by layer":
        whole.register_comm_hook(LayerOrder(model), by_layer_hook)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(3):
        whole(torch.randint(-4, 4, (8, 20), generator=generator).float()).sum().backward()
    report(parameters=model)
    return [parameter.grad.numpy() for parameter in model.parameters()]


def test_the_hook_gives_the_gradients_of_ddp() -> None:
    both = [run_ranks(by_layer, environment={"PRIORITIES": each}) for each in ("none", "by layer")]
    for ranks in both:
        assert [rank.error for rank in ranks] == [""] * WORKERS
    for one, other in zip(both[0][0].result, both[1][1].result, strict=True):
        assert np.array_equal(one, other)
    plain, urgent = (ranks[0] for ranks in both)
    assert urgent.reductions == plain.reductions + urgent.counts["priority.votes"]


def test_the_first_layer_is_the_most_urgent() -> None:
    from agglab.hosts.training.hook import LayerOrder

    model = layers()
    order = LayerOrder(model)
    parameters = list(model.parameters())
    assert [order.priority_of([each]) for each in parameters] == [-n for n in range(12)]
    assert order.priority_of(parameters[7:3:-1]) == -4
    for others in ([], list(layers().parameters()), [*parameters, *layers().parameters()]):
        with pytest.raises(ValueError, match="parameters of another model"):
            order.priority_of(others)
