"""A training script as a program of its own, as its author would write it for torchrun: nothing of
Agglab in it but the backend's name."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import needs
import pytest

needs.require("PyTorch")

from training_ranks import Together, free_port  # noqa: E402

from agglab.hosts.training.environment import script_environment  # noqa: E402
from agglab.hosts.training.service import Service, Terms  # noqa: E402

WORKERS = 2
SCRIPT = """
import os
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


dist.init_process_group("agglab")
rank = dist.get_rank()
torch.manual_seed(rank)
ddp_model = DDP(ToyModel())
loss_fn, optimizer = nn.MSELoss(), optim.SGD(ddp_model.parameters(), lr=0.001)
for _ in range(4):
    optimizer.zero_grad()
    loss_fn(ddp_model(torch.randn(20, 10)), torch.randn(20, 5)).backward()
    optimizer.step()
assert dist.get_backend() == "agglab"
print(sum(p.double().sum().item() for p in ddp_model.parameters()), flush=True)
"""


class Host:
    """A rank's script, and its agent in a thread."""

    def __init__(self, folder: Path, script: Path, rank: int, port: int, reduce: Any) -> None:
        path = str(folder / str(rank))
        self.service = Service(path, Terms(rank, WORKERS, 1000, "127.0.0.1"), reduce, print)
        told = script_environment(rank, WORKERS, ("127.0.0.1", port), "test", path)
        outcome = str(folder / f"{rank}.json")
        told["AGGLAB_AGENT"] = str(os.getpid())
        self.program = subprocess.Popen(
            [sys.executable, "-m", "agglab.hosts.script_run", outcome, str(script)],
            env={**os.environ, "OMP_NUM_THREADS": "1", **told},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        while not (self.service.left or self.program.poll() is not None):
            self.service.wait(0.1)
            self.service.step()


@pytest.mark.long
@pytest.mark.parametrize("ends", ["dist.destroy_process_group()", ""])
def test_a_script_of_the_tutorials_shape_runs_by_the_backends_name_alone(
    tmp_path: Path, ends: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT + ends)
    port, together = free_port(), Together(WORKERS)
    hosts = [Host(tmp_path, script, rank, port, together.of(rank)) for rank in range(WORKERS)]
    told = [host.program.communicate() for host in hosts]
    for host in hosts:
        host.thread.join()
        host.service.close()
    assert [out.count("\n") for out, _ in told] == [1, 1], told[0][1]
    assert told[0][0] == told[1][0]
    assert [host.service.reductions for host in hosts] == [4, 4]
    assert all(host.service.goodbye for host in hosts)
