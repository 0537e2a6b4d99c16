"""On real links a caller's array is judged, not what the agent made of it: workers of one's own
that return something else than they should. tests/unit/testbed/systems/test_received_arrays.py:
virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.root

WORKER = """
import numpy as np
from agglab.hosts import AllReducer

class Spoils(AllReducer):
    round = -1

    def all_reduce(self, array, out=None, sums=None):
        self.round += 1
        total = super().all_reduce(array, out, sums)
        if self.rank == 1 and self.round == 1:
            {change}
        return total
"""
RUN = """
topology: {{workers: 2}}
switch: {{lanes: 64, slots: 16}}
workload: {{elements: 4000, dtype: {dtype}, rounds: 2, worker: "own.py:Spoils"}}
expect: {{exact: {exact}}}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("dtype", "change", "index", "wrong"),
    [
        ("float32", "total *= 1.5", None, range(2000, 4001)),
        ("float32", "total[-1] = np.nan", 3999, [1]),
        ("float32", "total = total + 1", None, range(4000, 4001)),
        ("float32", "total = total[:-1]", None, [4000]),
        ("int32", "total[-1] += 1", 3999, [1]),
    ],
    ids=["half as much again", "NaN", "another array", "too short", "integer"],
)
def test_what_all_reduce_returned_is_judged(
    scenario, tmp_path: Path, dtype: str, change: str, index: int | None, wrong
) -> None:
    (tmp_path / "own.py").write_text(WORKER.format(change=change))
    text = RUN.format(dtype=dtype, exact="true" if dtype == "float32" else "{equals: true}")
    (tmp_path / "spoilt.yaml").write_text(text)
    ended = scenario.run(str(tmp_path / "spoilt.yaml"))
    assert ended.code == 1, ended.out + ended.err
    metrics, first = ended.metrics, ended.metrics["first_wrong"]
    assert metrics["exact"] is (dtype == "float32")
    assert metrics["wrong_results"] in wrong
    assert (first["worker"], first["rank"], first["round"]) == ("h2", 1, 1)
    assert first["what"] == "result" and (index is None or first["index"] == index)
    assert "h2 (worker 1 of job1), round 1: result" in ended.out
    assert not (ended.folder / "sums").exists()
