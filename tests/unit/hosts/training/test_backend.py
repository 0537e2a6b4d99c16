"""PyTorch's backend: what goes through the system, and that PyTorch's own users of it run."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import needs
import numpy as np
import pytest

needs.require("PyTorch")

import torch  # noqa: E402
from torch import distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: E402
from training_ranks import Together, run_ranks  # noqa: E402

from agglab.hosts.errors import AllReduceError, NotFinite  # noqa: E402
from agglab.hosts.training import priority, report  # noqa: E402


def start() -> None:
    dist.init_process_group(os.environ.get("TESTED_BACKEND", "agglab"))


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))


def train(wrapped: Any, rank: int, steps: int = 5) -> list[float]:
    """Losses."""
    optimiser = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    losses = []
    for step in range(steps):
        x = torch.randn(8, 20, generator=generator)
        optimiser.zero_grad()
        loss = (wrapped(x) - x[:, :5]).pow(2).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        report(step=step, loss=loss)
    return losses


def ddp(rank: int, workers: int) -> Any:
    start()
    wrapped = DDP(model(), bucket_cap_mb=0.001)
    losses = train(wrapped, rank)
    report(parameters=wrapped)
    return losses, [p.detach().numpy() for p in wrapped.parameters()]


def test_ddp_trains_with_equal_parameters() -> None:
    ranks = run_ranks(ddp)
    assert [rank.error for rank in ranks] == ["", ""]
    (losses, parameters), (_, others) = (rank.result for rank in ranks)
    assert losses[-1] < losses[0]
    for one, other in zip(parameters, others, strict=True):
        assert np.array_equal(one, other)
    assert ranks[0].digest == ranks[1].digest and ranks[0].reductions == 9
    assert ranks[0].reports[-1] == ranks[1].reports[-1]
    assert [each["step"] for each in ranks[0].reports[:-1]] == [0, 1, 2, 3, 4]
    assert all(rank.goodbye for rank in ranks)


def expected(dtype: Any, workers: int) -> Any:
    return sum(values(rank, dtype).to(torch.float64) for rank in range(workers))


def values(rank: int, dtype: Any, elements: int = 2500) -> Any:
    """Small integers: their sums are exact in every type."""
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(-20, 20, (elements,), generator=generator).to(dtype)


def check(result: Any, expected: Any) -> None:
    assert torch.equal(result.to(torch.float64), expected), (result, expected)


def api(rank: int, workers: int) -> Any:
    """All-reduces of every kind, some by c10d's other overloads."""
    start()
    group = dist.group.WORLD
    for dtype in (torch.float32, torch.int32, torch.float16, torch.bfloat16):
        x = values(rank, dtype)
        dist.all_reduce(x)
        check(x, expected(dtype, workers))
    x = values(rank, torch.float32)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    check(x, (expected(torch.float32, workers).float() / workers).double())
    x = torch.zeros(50, 100)
    x.t().copy_(values(rank, torch.float32, 5000).reshape(100, 50))
    dist.all_reduce(x.t())
    sums = sum(values(each, torch.float32, 5000) for each in range(workers))
    check(x.t(), sums.reshape(100, 50).to(torch.float64))
    x = torch.zeros(100)
    x[::2] = values(rank, torch.float32, 50)
    dist.all_reduce(x[::2])
    check(x[::2], sum(values(each, torch.float32, 50).double() for each in range(workers)))
    assert not x[1::2].any()
    dist.all_reduce(torch.empty(0))
    x = torch.tensor(rank + 1.0)
    dist.all_reduce(x)
    assert x.item() == workers * (workers + 1) / 2
    several = [values(rank, torch.float32), values(rank, torch.float32)[:1], torch.empty(0)]
    group.allreduce_coalesced(several).wait()
    check(several[0], expected(torch.float32, workers))
    check(several[1], expected(torch.float32, workers)[:1])
    with dist.distributed_c10d._coalescing_manager():
        several = [values(rank, torch.float32) for _ in range(3)]
        for each in several:
            dist.all_reduce(each)
    for each in several:
        check(each, expected(torch.float32, workers))
    large = values(rank, torch.float32, 25_001)
    dist.all_reduce(large)
    check(large, sum(values(each, torch.float32, 25_001).double() for each in range(workers)))
    flying = [values(rank, torch.float32) * n for n in range(20)]
    works = [dist.all_reduce(each, async_op=True) for each in flying]
    futures = [work.get_future() for work in works]
    assert torch.equal(futures[7].wait()[0], flying[7])
    for n, (work, each) in enumerate(zip(works, flying, strict=True)):
        work.wait()
        assert work.is_completed()
        check(each, expected(torch.float32, workers) * n)
    with torch.inference_mode():
        x = torch.ones(5)
        dist.all_reduce(x)
        assert x.tolist() == [workers] * 5
    x = values(rank, torch.float32)
    group.allreduce([x]).wait()
    check(x, expected(torch.float32, workers))
    group.allreduce(x.fill_(1), dist.ReduceOp.MAX).wait()
    assert x.eq(1).all()
    with pytest.raises(RuntimeError, match="share memory"):
        dist.all_reduce(torch.ones(1).expand(3))


def test_all_reduces_of_every_kind() -> None:
    ranks = run_ranks(api, workers=3)
    assert [rank.error for rank in ranks] == [""] * 3
    # 25,001 values of a service that takes 10,000: three reductions.
    assert {rank.reductions for rank in ranks} == {4 + 1 + 2 + 1 + 1 + 1 + 3 + 20 + 1 + 1}
    assert ranks[0].counts["allreduce.op"] == 1
    assert ranks[0].counts["allreduce_coalesced.system"] == 2


def by_gloo(rank: int, workers: int) -> Any:
    start()
    x = values(rank, torch.float64)
    dist.all_reduce(x)
    check(x, expected(torch.float64, workers))
    x = values(rank, torch.int64)
    dist.all_reduce(x)
    check(x, expected(torch.int64, workers))
    x = values(rank, torch.float32)
    dist.all_reduce(x, dist.ReduceOp.MAX)
    check(x, torch.stack([values(each, torch.float64) for each in range(workers)]).amax(0))
    sparse = torch.sparse_coo_tensor([[rank, 5]], [1.0, 2.0], (8,))
    dist.all_reduce(sparse)
    dense = torch.zeros(8)
    dense[:workers] = 1.0
    dense[5] += 2.0 * workers
    assert torch.equal(sparse.to_dense(), dense)


def test_what_the_system_does_not_take_goes_by_gloo_and_is_counted() -> None:
    ranks = run_ranks(by_gloo, workers=3)
    assert [rank.error for rank in ranks] == [""] * 3
    for rank in ranks:
        assert rank.reductions == 0
        calls = {name: n for name, n in rank.counts.items() if not name.endswith("bytes")}
        assert calls == {"allreduce.dtype": 2, "allreduce.op": 1, "allreduce.sparse": 1}
        assert rank.counts["allreduce.dtype.bytes"] == 2 * 2500 * 8


def of_integers(rank: int, workers: int) -> str:
    start()
    x = values(rank, torch.int32)
    dist.all_reduce(x)
    check(x, expected(torch.int32, workers))
    x = values(rank, torch.bfloat16)
    dist.all_reduce(x)
    check(x, expected(torch.bfloat16, workers))
    with pytest.raises(RuntimeError) as caught, priority(1):
        dist.all_reduce(x)
    return str(caught.value)


def test_where_sums_may_lack_workers_integers_go_by_gloo_and_nothing_overtakes() -> None:
    ranks = run_ranks(of_integers, dtypes=("float32",))
    assert [rank.error for rank in ranks] == ["", ""]
    assert list(ranks[0].dtypes) == ["float32"] and ranks[0].counts["allreduce.dtype"] == 1
    assert ranks[0].result.startswith("an all-reduce cannot have a priority if sums may lack")


def groups(rank: int, workers: int) -> Any:
    start()
    everybody = dist.new_group(list(range(workers)))
    pair = dist.new_group([0, 1])
    x = torch.ones(10)
    dist.all_reduce(x, group=everybody)
    assert x.tolist() == [workers] * 10
    if rank < 2:
        dist.all_reduce(x, group=pair)
        assert x.tolist() == [2 * workers] * 10
    dist.barrier()


def test_groups_of_all_ranks_go_through_the_system_others_by_gloo() -> None:
    ranks = run_ranks(groups, workers=3)
    assert [rank.error for rank in ranks] == [""] * 3
    assert [rank.reductions for rank in ranks] == [1, 1, 1]
    assert [rank.counts.get("allreduce.group") for rank in ranks] == [1, 1, None]


def gloo_scatters_lists() -> bool:
    """Gloo of PyTorch 2.4 refuses `reduce_scatter` of a list."""
    alone = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, timedelta(seconds=10))
    try:
        alone.reduce_scatter([torch.empty(1)], [[torch.ones(1)]]).wait()
    except RuntimeError as error:
        assert "does not support reduce_scatter" in str(error)
        return False
    return True


def collectives(rank: int, workers: int) -> Any:
    """Everything that goes to Gloo, and functional collectives, from C++ too."""
    from torch.distributed import _functional_collectives as functional

    start()
    x = torch.full((4,), float(rank))
    dist.broadcast(x, src=1)
    assert x.tolist() == [1.0] * 4
    parts = [torch.empty(2) for _ in range(workers)]
    dist.all_gather(parts, torch.full((2,), float(rank)))
    assert [part[0].item() for part in parts] == list(range(workers))
    out = torch.empty(2 * workers)
    dist.all_gather_into_tensor(out, torch.full((2,), float(rank)))
    assert out[::2].tolist() == list(range(workers))
    mine = torch.empty(2)
    dist.reduce_scatter_tensor(mine, torch.ones(2 * workers))
    assert mine.tolist() == [workers] * 2
    if gloo_scatters_lists():
        dist.reduce_scatter(mine, [torch.ones(2) for _ in range(workers)])
    out = torch.empty(workers)
    dist.all_to_all_single(out, torch.full((workers,), float(rank)))
    assert out.tolist() == list(range(workers))
    gathered: list[Any] = [None] * workers
    dist.all_gather_object(gathered, {"rank": rank})
    assert [each["rank"] for each in gathered] == list(range(workers))
    x = torch.ones(3)
    dist.reduce(x, dst=0)
    dist.gather(torch.ones(1), [torch.empty(1) for _ in range(workers)] if rank == 0 else None)
    dist.scatter(mine, [torch.ones(2) for _ in range(workers)] if rank == 0 else None)
    if rank == 0:
        dist.send(torch.arange(3.0), dst=1)
    elif rank == 1:
        dist.recv(x, src=0)
        assert x.tolist() == [0, 1, 2]
    dist.barrier()
    dist.group.WORLD.monitored_barrier()
    ones = torch.ones(4)
    assert functional.all_reduce(ones, "sum", dist.group.WORLD).tolist() == [workers] * 4
    assert functional.all_reduce(ones, "avg", dist.group.WORLD).tolist() == [1] * 4
    both = functional.all_reduce_coalesced([ones, 2 * ones], "sum", dist.group.WORLD)
    assert [each[0].item() for each in both] == [workers, 2 * workers]
    whole = functional.all_gather_tensor(ones, 0, dist.group.WORLD)
    assert whole.shape == (4 * workers,)
    part = functional.reduce_scatter_tensor(torch.ones(2 * workers), "sum", 0, dist.group.WORLD)
    assert part.tolist() == [workers] * 2


@pytest.mark.parametrize("name", ["agglab", "cpu:agglab"])
def test_every_other_collective_and_the_functional_ones(name: str) -> None:
    ranks = run_ranks(collectives, workers=2, environment={"TESTED_BACKEND": name})
    assert [rank.error for rank in ranks] == ["", ""]


def unused(rank: int, workers: int) -> Any:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(20, 5), nn.Linear(20, 5)

        def forward(self, x: Any) -> Any:
            return self.one(x) if rank == 0 else self.other(x)

    start()
    torch.manual_seed(1)
    wrapped = DDP(Half(), find_unused_parameters=True)
    train(wrapped, rank, steps=3)
    report(parameters=wrapped)
    wrapped = DDP(model().to(torch.bfloat16), gradient_as_bucket_view=True)
    wrapped(torch.ones(2, 20, dtype=torch.bfloat16)).sum().backward()
    embedding = DDP(nn.Embedding(10, 4, sparse=True))
    embedding(torch.tensor([rank, 3])).sum().backward()
    report(sparse=float(embedding.module.weight.grad.to_dense().sum()))


def power_sgd(rank: int, workers: int) -> Any:
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    start()
    wrapped = DDP(model())
    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, matrix_approximation_rank=2)
    wrapped.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    losses = train(wrapped, rank, steps=6)
    report(parameters=wrapped)
    return losses


def zero(rank: int, workers: int) -> Any:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    start()
    wrapped = DDP(model())
    optimiser = ZeroRedundancyOptimizer(wrapped.parameters(), torch.optim.Adam, lr=0.01)
    for _ in range(3):
        wrapped(torch.full((2, 20), float(rank))).sum().backward()
        optimiser.step()
        optimiser.zero_grad()
    report(parameters=wrapped)


def fsdp(rank: int, workers: int) -> Any:
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    start()
    whole = FullyShardedDataParallel(
        model(),
        device_id=torch.device("cpu"),
        sharding_strategy=ShardingStrategy.FULL_SHARD,
        use_orig_params=True,
    )
    train(whole, rank, steps=3)
    with FullyShardedDataParallel.summon_full_params(whole):
        report(parameters=float(sum(p.double().sum() for p in whole.parameters())))


def fsdp2(rank: int, workers: int) -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    start()
    sharded = fully_shard(model(), mesh=init_device_mesh("cpu", (workers,)))
    train(sharded, rank, steps=3)
    whole = [p.full_tensor().double().sum() for p in sharded.parameters()]
    report(parameters=float(sum(whole)))


def hooked(rank: int, workers: int) -> Any:
    from agglab.hosts.training.hook import all_reduce_hook

    dist.init_process_group("gloo")
    wrapped = DDP(model())
    wrapped.register_comm_hook(None, all_reduce_hook)
    train(wrapped, rank, steps=3)
    report(parameters=wrapped)


NEEDS_FSDP2 = needs.mark("PyTorch 2.6 or newer")


@pytest.mark.parametrize(
    "script", [unused, power_sgd, zero, fsdp, pytest.param(fsdp2, marks=NEEDS_FSDP2), hooked]
)
def test_what_stands_on_process_groups_trains(script: Any) -> None:
    ranks = run_ranks(script)
    assert [rank.error for rank in ranks] == ["", ""]
    assert ranks[0].reports[-1] == ranks[1].reports[-1]
    assert ranks[0].digest == ranks[1].digest


def test_the_hook_takes_gradients_alone_and_gives_ddp_s_own_result() -> None:
    by_hook, by_backend = (run_ranks(script)[0] for script in (hooked, three_steps))
    assert by_hook.reductions == by_backend.reductions == 3
    assert by_hook.reports[-1] == by_backend.reports[-1]


def three_steps(rank: int, workers: int) -> Any:
    start()
    wrapped = DDP(model())
    train(wrapped, rank, steps=3)
    report(parameters=wrapped)


def test_every_method_of_pytorchs_class_is_named() -> None:
    from agglab.hosts.training import backend

    named = {*backend.DELEGATED, *backend.OWN, *backend.KEPT}
    found = {
        name
        for name in vars(dist.ProcessGroup)
        if not name.startswith("__") and not name.isupper() and "pybind11" not in name
    }
    assert found - {"BackendType", "Options"} <= named
    for name in found & {*backend.DELEGATED, *backend.OWN}:
        assert name in vars(backend.ProcessGroup), name


def no_agent(rank: int, workers: int) -> str:
    os.environ.pop("AGGLAB_TRAINING")
    with pytest.raises(RuntimeError) as caught:
        start()
    assert not report(loss=1.0)
    return str(caught.value)


def test_outside_an_agent_the_error_says_what_to_do() -> None:
    first, _ = run_ranks(no_agent)
    assert first.result.startswith("no agent: AGGLAB_TRAINING is not set. Start the script by a")
    assert "\n" not in first.result


def dies(rank: int, workers: int) -> Any:
    start()
    dist.all_reduce(torch.ones(5))
    if rank == 1:
        os._exit(3)
    try:
        dist.all_reduce(torch.ones(5))
    except RuntimeError as error:
        return str(error)


def test_the_others_hear_of_a_rank_that_died() -> None:
    together = Together(2)
    ranks = run_ranks(dies, reduces=together.of, on_death=together.miss_a_worker)
    assert ranks[0].result == ranks[0].agent_error == "a worker is missing"
    assert ranks[1].exit_code == 3 and not ranks[1].goodbye


def in_ddp(rank: int, workers: int) -> Any:
    start()
    wrapped = DDP(model())
    try:
        for _ in range(3):
            wrapped(torch.ones(2, 20)).sum().backward()
    except RuntimeError as error:
        lines = [str(error)]
        try:
            dist.all_reduce(torch.ones(5))
        except RuntimeError as after:
            lines.append(str(after))
        return lines


def test_ddp_raises_where_a_round_fails() -> None:
    together = Together(2)
    counted = [0, 0]

    def of(rank: int) -> Any:
        reduce = together.of(rank)

        def failing(values: Any, out: Any, agreement: Any) -> None:
            counted[rank] += 1
            if counted[rank] == 2:
                raise AllReduceError("no result came for 10 s")
            reduce(values, out, agreement)

        return failing

    ranks = run_ranks(in_ddp, reduces=of)
    for rank in ranks:
        in_backward, after = rank.result
        assert "no result came for 10 s" in in_backward.splitlines()[0]
        assert after == "no result came for 10 s"


def not_finite(rank: int, workers: int) -> Any:
    start()
    with pytest.raises(RuntimeError, match=r"^Inf or NaN"):
        dist.all_reduce(torch.full((5,), float("nan")))
    x = torch.ones(5)
    dist.all_reduce(x)
    return x.tolist()


def test_after_inf_or_nan_the_next_one_works() -> None:
    together = Together(2)

    def of(rank: int) -> Any:
        reduce = together.of(rank)

        def careful(values: Any, out: Any, agreement: Any) -> None:
            reduce(values, out, agreement)
            if not np.isfinite(out).all():
                raise NotFinite("Inf or NaN in chunk 0")

        return careful

    ranks = run_ranks(not_finite, reduces=of)
    assert [rank.result for rank in ranks] == [[2.0] * 5] * 2, ranks
    assert not ranks[0].agent_error


def native_halves(rank: int, workers: int) -> Any:
    start()
    found = []
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.full((100,), 1.5, dtype=dtype)[::2]
        dist.all_reduce(x)
        mean = torch.full((3,), 1.5 + rank, dtype=dtype)
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        found.append((x.dtype == dtype, x.tolist(), mean.tolist()))
    return found


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_type_of_16_bits_that_a_system_takes_travels_as_it_is(name: str) -> None:
    other = "float32"
    ranks = run_ranks(native_halves, dtypes=("float32", "int32", name))
    asked = [name, name, other, other] if name == "float16" else [other, other, name, name]
    assert [rank.dtypes for rank in ranks] == [asked] * 2
    assert [rank.result for rank in ranks] == [[(True, [3.0] * 50, [2.0] * 3)] * 2] * 2


def test_without_such_a_type_they_travel_as_float32() -> None:
    ranks = run_ranks(native_halves)
    assert [rank.dtypes for rank in ranks] == [["float32"] * 4] * 2
    assert [rank.result for rank in ranks] == [[(True, [3.0] * 50, [2.0] * 3)] * 2] * 2
