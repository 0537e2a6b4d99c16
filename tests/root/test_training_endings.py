"""Training scripts whose sums the system does not make, and the ways in which scripts end, in runs
as a user has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import needs
import pytest

needs.require("PyTorch")
pytestmark = pytest.mark.root

TEXT = """
name: training
topology: {workers: 2}
links: {rate: 100mbit}
workload: {kind: torch, script: SCRIPT, elements: 1000, rounds: 1}
"""
JOIN = "import os, signal, sys, threading\nimport torch\nimport torch.distributed as dist\n"
JOIN += "rank = int(os.environ['RANK'])\n"
SUMMED = JOIN + "dist.init_process_group('agglab')\ndist.all_reduce(torch.ones(5))\n"
SHARDED = """
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

distributed.init_process_group("agglab")
mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
model = fully_shard(nn.Linear(20, 64), mesh=mesh)
for _ in range(3):
    model(torch.ones(8, 20)).sum().backward()
distributed.destroy_process_group()
"""


@pytest.fixture
def train(scenario: Any) -> Callable[..., Any]:
    def run(script: str, expected: str = "") -> Any:
        path = scenario.results.parent / "train.py"
        path.write_text(script)
        return scenario.run(scenario.write(TEXT.replace("SCRIPT", str(path)) + expected))

    return run


@pytest.mark.long
@needs.mark("PyTorch 2.6 or newer")
@pytest.mark.parametrize(
    ("expected", "code"),
    [("expect: {exact: true}\n", 1), ("expect: {findings: [not-aggregated]}\n", 0)],
)
def test_fully_sharded_training_does_not_pass_as_the_systems(train, expected, code) -> None:
    ended = train(SHARDED, expected)
    assert (ended.code, ended.metrics["exact"]) == (code, None), ended.out
    assert [found["kind"] for found in ended.metrics["findings"]] == ["not-aggregated"]
    lines = ended.out[ended.out.index("PASSED" if code == 0 else "FAILED") :].splitlines()
    assert lines[1].startswith("  finding   not-aggregated: the system summed nothing for job1; by")
    assert "reduce_scatter" in lines[1] and "all_gather" in lines[1]
    assert lines[2] == "  sums      no sum was compared with a right one"
    counts = ended.metrics["training"]["counts"]
    assert sum(n for name, n in counts.items() if name.endswith("_collective")) >= 6
    if code:
        reason = "expected exact = true, got nothing: no sum was compared with a right one"
        assert reason in ended.metrics["reason"]


ENDINGS = {
    "by os._exit(0)": (SUMMED + "os._exit(0)", ""),
    "by sys.exit(0)": (SUMMED + "sys.exit(0)", ""),
    "with a daemon thread": (
        SUMMED + "threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "",
    ),
    "by an exit code": (SUMMED + "if rank: os._exit(3)", "h2: worker 1: train.py ended with 3"),
    "by sys.exit(3)": (
        SUMMED + "if rank: sys.exit(3)",
        "h2: worker 1: train.py: it called sys.exit(3)",
    ),
    "by a signal": (
        SUMMED + "if rank: os.kill(os.getpid(), signal.SIGTERM)",
        "h2: worker 1: train.py was killed by SIGTERM",
    ),
    "by an exception": (
        SUMMED + "if rank: raise ValueError('no data')",
        "h2: worker 1: train.py: ValueError: no data",
    ),
    "without a process group": ("pass", "not-aggregated: the system summed nothing for job1; its "),
    "with another backend": (
        JOIN + "dist.init_process_group('gloo')\ndist.all_reduce(torch.ones(5))",
        "not-aggregated: the system summed nothing for job1; its script called no collective of "
        "the backend agglab",
    ),
}


@pytest.mark.long(but=["by sys.exit(0)"])
@pytest.mark.parametrize("name", ENDINGS)
def test_a_script_ends_with_the_right_verdict_and_one_line(train, name: str) -> None:
    script, reason = ENDINGS[name]
    ended = train(script)
    assert ended.metrics["reason"].startswith(reason) and "\n" not in ended.metrics["reason"]
    assert ended.code == (1 if reason else 0) and bool(ended.metrics["reason"]) == bool(reason)
    assert ended.metrics["exact"] is (True if not reason else None)
