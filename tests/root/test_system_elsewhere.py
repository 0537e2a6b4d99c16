"""A system with C code in a folder outside the repository, on real links."""

from __future__ import annotations

from pathlib import Path

import pytest
from copied_system import copied_ring

pytestmark = pytest.mark.root

TEXT = """
system: SYSTEM
topology: {workers: 3}
links: {rate: 50mbit, loss: 0.5%}
workload: {elements: 20_000, dtype: float32, rounds: 2}
expect: {exact: true, links_as_predicted: true}
"""


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
def test_it_sums_as_the_same_system_inside_does(scenario, tmp_path: Path, inside: bool) -> None:
    system = "ring" if inside else copied_ring(tmp_path, "mine_of_a_user")
    ended = scenario.run(scenario.write(TEXT.replace("SYSTEM", system)))
    assert ended.code == 0, ended.out + ended.err
    assert ended.metrics["exact"] is True and ended.metrics["totals"]["retransmitted"] > 0
