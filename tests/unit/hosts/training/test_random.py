"""Random collectives, several under way, and every result compared; over real packets of a ring on
loopback. The long version: docs/training.md."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import needs
import pytest

needs.require("PyTorch")

import torch  # noqa: E402
from torch import distributed as dist  # noqa: E402
from training_ranks import run_ranks  # noqa: E402

from agglab.hosts.agreement import Agreement  # noqa: E402
from agglab.hosts.all_reduce import Reducer  # noqa: E402
from agglab.hosts.part import WORKER, Part  # noqa: E402
from agglab.hosts.training import priority  # noqa: E402
from agglab.hosts.training.service import ReduceCall  # noqa: E402
from agglab.hosts.workloads import Dense  # noqa: E402
from agglab.systems.ring import endpoint as ring  # noqa: E402

COUNT = int(os.environ.get("AGGLAB_COLLECTIVES", "80"))
SEED = int(os.environ.get("AGGLAB_SEED", "1"))
ELEMENTS = 3000
FLYING_MAX = 6
PRIORITIES = [None, -2, -1, 0, 1, 7]
TYPES = [torch.float32, torch.int32, torch.float16, torch.bfloat16, torch.float64, torch.int64]


def tensor(seed: int, rank: int, elements: int, dtype: Any) -> Any:
    generator = torch.Generator().manual_seed(seed * 31 + rank)
    return torch.randint(-8, 9, (elements,), generator=generator).to(dtype)


class Collectives:
    """Begins collectives and compares what they come to. All ranks draw the same ones."""

    def __init__(self, rank: int, workers: int) -> None:
        self.rank, self.workers = rank, workers
        self.groups = [dist.group.WORLD, dist.new_group(list(range(workers)))]
        self.flying: list[tuple[Any, Any, Any, str]] = []

    def begin(self, chance: random.Random) -> None:
        """One more, and the end of some when there are many."""
        seed, group = chance.randrange(1 << 30), chance.choice(self.groups)
        elements, dtype = chance.choice([0, 1, 7, 500, 2999, 7001]), chance.choice(TYPES)
        kind = chance.choice(["sum", "sum", "sum", "avg", "max", "broadcast", "gather", "strided"])
        if kind == "avg" and not dtype.is_floating_point:
            kind = "sum"
        if kind == "avg" and dtype not in (torch.float32, torch.float16, torch.bfloat16):
            kind = "sum"  # Gloo, to which other types go, has no averages
        parts = [tensor(seed, rank, elements, dtype) for rank in range(self.workers)]
        mine = parts[self.rank].clone()
        urgency = chance.choice(PRIORITIES)
        with nullcontext() if urgency is None else priority(urgency):
            work, result, expected = getattr(self, f"_{kind}")(mine, parts, group)
        self.flying.append((work, result, expected, f"{kind} {elements} {dtype}"))
        while len(self.flying) > chance.randrange(1, FLYING_MAX):
            self._end(chance.randrange(len(self.flying)))

    def end(self) -> None:
        """Of all that are under way."""
        while self.flying:
            self._end(0)

    def _end(self, which: int) -> None:
        work, result, expected, what = self.flying.pop(which)
        work.wait()
        assert torch.equal(result, expected), what

    def _sum(self, mine: Any, parts: list[Any], group: Any) -> Any:
        return dist.all_reduce(mine, group=group, async_op=True), mine, _total(parts)

    def _strided(self, mine: Any, parts: list[Any], group: Any) -> Any:
        if mine.dtype not in TYPES[:4]:
            return self._sum(mine, parts, group)  # Gloo takes none
        apart = torch.empty(2 * mine.numel(), dtype=mine.dtype)[::2].copy_(mine)
        return dist.all_reduce(apart, group=group, async_op=True), apart, _total(parts)

    def _avg(self, mine: Any, parts: list[Any], group: Any) -> Any:
        work = dist.all_reduce(mine, dist.ReduceOp.AVG, group=group, async_op=True)
        total = torch.stack(parts).float().sum(0).div(self.workers)
        return work, mine, total.to(mine.dtype)

    def _max(self, mine: Any, parts: list[Any], group: Any) -> Any:
        work = dist.all_reduce(mine, dist.ReduceOp.MAX, group=group, async_op=True)
        return work, mine, torch.stack(parts).amax(0)

    def _broadcast(self, mine: Any, parts: list[Any], group: Any) -> Any:
        return dist.broadcast(mine, 1, group=group, async_op=True), mine, parts[1]

    def _gather(self, mine: Any, parts: list[Any], group: Any) -> Any:
        out = torch.empty(self.workers * mine.numel(), dtype=mine.dtype)
        work = dist.all_gather_into_tensor(out, mine, group=group, async_op=True)
        return work, out, torch.cat(parts)


def _total(parts: list[Any]) -> Any:
    return torch.stack(parts).double().sum(0).to(parts[0].dtype)


def collectives(rank: int, workers: int) -> int:
    dist.init_process_group("agglab")
    chance, all_of_them = random.Random(int(os.environ["SEED"])), Collectives(rank, workers)
    for _ in range(int(os.environ["COUNT"])):
        all_of_them.begin(chance)
    all_of_them.end()
    return len(all_of_them.flying)


@contextmanager
def ring_of(workers: int) -> Iterator[list[Reducer]]:
    """One at each of 127.0.0.2 and on."""
    peers = []
    for rank in range(workers):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind((f"127.0.0.{rank + 2}", 0))
            peers.append(free.getsockname())
    settings = {"lanes": 256, "window": 32, "session": 1, "peers": peers}
    work = Dense(ELEMENTS, "float32")
    reducers = []
    for rank, bind in enumerate(peers):
        part = Part(1, WORKER, rank, workers, bind, None, work, 20.0, settings)
        reducers.append(Reducer(ring.endpoint(part), bind))
    try:
        yield reducers
    finally:
        for reducer in reducers:
            reducer.close()


def reduction_of(reducer: Reducer) -> ReduceCall:
    """As an agent makes it (hosts/script_round.py)."""

    def reduce(values: Any, out: Any, agreement: Agreement) -> None:
        reducer.agree_on(agreement)
        reducer.all_reduce(values, out=out)

    return reduce


@pytest.mark.timeout(60 + COUNT)
def test_random_collectives_over_a_ring() -> None:
    with ring_of(3) as reducers:
        ranks = run_ranks(
            collectives,
            workers=3,
            reduces=lambda rank: reduction_of(reducers[rank]),
            elements=ELEMENTS,
            environment={"SEED": str(SEED), "COUNT": str(COUNT)},
            serves=lambda rank: reducers[rank].serve,
            patience_s=60 + COUNT,
        )
    assert [rank.error for rank in ranks] == [""] * 3
    assert len({rank.digest for rank in ranks}) == 1
    assert ranks[0].reductions > COUNT // 4
    # All ranks overtake alike, although they begin at different times.
    votes = {rank.counts["priority.votes"] for rank in ranks}
    overtakes = {rank.counts.get("priority.overtakes", 0) for rank in ranks}
    assert len(votes) == len(overtakes) == 1 and max(votes) > COUNT // 8
    assert COUNT < 1000 or max(overtakes) > COUNT // 100


def unlike(rank: int, workers: int) -> str:
    """The last rank reduces something else than the others, of as many values."""
    dist.init_process_group("agglab")
    x, is_odd, kind = torch.ones(6), rank == workers - 1, os.environ["KIND"]
    dist.all_reduce(x)
    other = dist.new_group(list(range(workers)))
    cut = 4 if is_odd else 2
    average = dist.ReduceOp.AVG if is_odd else dist.ReduceOp.SUM
    attempts: dict[str, Callable[[], Any]] = {
        "operation": lambda: dist.all_reduce(x, average),
        "shape": lambda: dist.all_reduce(x.view(3, 2) if is_odd else x.view(2, 3)),
        "dtype": lambda: dist.all_reduce(x.half() if is_odd else x),
        "coalesced": lambda: dist.group.WORLD.allreduce_coalesced([x[:cut], x[cut:]]).wait(),
        "group": lambda: dist.all_reduce(x, group=other if is_odd else None),
    }
    with pytest.raises(RuntimeError) as caught:
        attempts[kind]()
    return str(caught.value)


@pytest.mark.parametrize("kind", ["operation", "shape", "dtype", "coalesced", "group"])
def test_all_ranks_hear_that_one_reduces_something_else(kind: str) -> None:
    with ring_of(3) as reducers:
        ranks = run_ranks(
            unlike,
            workers=3,
            reduces=lambda rank: reduction_of(reducers[rank]),
            elements=ELEMENTS,
            environment={"KIND": kind},
            serves=lambda rank: reducers[rank].serve,
        )
    assert [rank.error for rank in ranks] == [""] * 3
    for rank in ranks:
        assert "all workers of a job have to reduce alike" in rank.result
        names_both = "operation SUM" in rank.result and "operation AVG" in rank.result
        assert names_both == (kind == "operation")
