"""PyTorch's backend: what goes through the system, and that PyTorch's own users of it run."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: E402
from training_ranks import run_ranks  # noqa: E402

from agglab.hosts.training import report  # noqa: E402


def start() -> None:
    dist.init_process_group("agglab")


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


def test_ddp_trains_with_equal_parameters(tmp_path) -> None:
    ranks = run_ranks(ddp, folder=tmp_path)
    assert [rank.error for rank in ranks] == ["", ""]
    (losses, parameters), (_, others) = (rank.result for rank in ranks)
    assert losses[-1] < losses[0]
    for one, other in zip(parameters, others, strict=True):
        assert np.array_equal(one, other)
    assert ranks[0].digest == ranks[1].digest and ranks[0].reductions == 9
    assert ranks[0].reports[-1] == ranks[1].reports[-1]
    assert [each["step"] for each in ranks[0].reports[:-1]] == [0, 1, 2, 3, 4]
    assert all(rank.goodbye for rank in ranks)
    assert os.listdir(tmp_path / "0") == os.listdir(tmp_path / "1")
