"""A system of two programs, a controller and a scheduler, on real links."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.root

TIERS = Path(__file__).parents[1] / "unit/testbed/own_system/tiers/tiers.py"
TEXT = f"""
name: tiers
system: {TIERS}:Tiers
topology: {{kind: two_tier, racks: 3, workers: 2}}
links: {{rate: 10mbit, queue: 1MB}}
switch: {{lanes: 4}}
workload: {{elements: 401, dtype: int32, rounds: 4}}
expect: {{exact: true, links_as_predicted: true}}
"""


@pytest.mark.long
def test_tables_move_between_rounds_and_no_sum_is_lost(scenario) -> None:
    ended = scenario.run(scenario.write(TEXT))
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    packets = {name: switch["packets"] for name, switch in metrics["switches"].items()}
    assert [packets[s].get("summed") for s in ("s1", "s2", "s3", "s4")] == [192, 192, 96, None]
    assert metrics["control"]["entries"] == 7 * 5 * 24
    assert metrics["control"]["steps"] == metrics["control"]["deadlines"] + 4
    assert metrics["rounds"] == 4 and not metrics["restarts"]
