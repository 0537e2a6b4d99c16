"""`workload.first_timeout`: when workers send their first packets again if all of them are lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from system_runs import run_in

from agglab.testbed import systems
from agglab.testbed.system_names import built_in

KEY = "workload.first_timeout"
SYSTEMS = [
    name
    for name in built_in()
    if KEY in systems.find(name).abilities.keys and "virtual" in systems.find(name).abilities.clocks
]
SCENARIO = """
name: tried
backend: virtual
system: {system}
topology: {{kind: rack, workers: 3, servers: 1}}
links: {{rate: 1gbit}}
workload: {{kind: {kind}, elements: 1_000, rounds: 1, first_timeout: {timeout}}}
faults: [{{kind: link_down, link: "*", at: 0s, for: 2ms}}]
"""


def round_s(system: str, timeout: str, folder: Path) -> float:
    """The time of a round in which every link is down in the first two milliseconds."""
    can = systems.find(system).abilities.workloads
    kind = "allreduce" if "allreduce" in can else "push_pull"
    code, metrics = run_in(folder)(SCENARIO.format(system=system, kind=kind, timeout=timeout))
    assert code == 0 and metrics["exact"] and metrics["totals"]["retransmitted"]
    time_s: float = metrics["allreduce"]["time_s"]["max"]
    return time_s


def test_most_systems_have_a_first_timeout() -> None:
    assert len(SYSTEMS) >= 8


@pytest.mark.parametrize("system", SYSTEMS)
def test_lost_first_packets_are_sent_again_after_the_first_timeout(
    system: str, tmp_path: Path
) -> None:
    short_s, usual_s, long_s = (
        round_s(system, timeout, tmp_path) for timeout in ("5ms", "auto", "400ms")
    )
    assert 0.005 <= short_s < 0.020 <= usual_s < 0.4 <= long_s
