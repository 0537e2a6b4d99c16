"""`workload.first_timeout`: when workers send their first packets again if all of them are lost."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from system_runs import run_in

from agglab.testbed import systems
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.schema.key import key_of
from agglab.testbed.schema.kinds import AutoOr, Quantity
from agglab.testbed.schema.system_names import built_in
from agglab.testbed.schema.workload_section import Workload

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


@pytest.mark.long(but=["atp"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_lost_first_packets_are_sent_again_after_the_first_timeout(
    system: str, tmp_path: Path
) -> None:
    short_s, usual_s, long_s = (
        round_s(system, timeout, tmp_path) for timeout in ("5ms", "auto", "400ms")
    )
    assert 0.005 <= short_s < 0.020 <= usual_s < 0.4 <= long_s


def test_the_longest_first_timeout_is_waited_for(tmp_path: Path) -> None:
    key = next(key_of(item) for item in fields(Workload) if item.name == "first_timeout_s")
    assert key and isinstance(key.kind, AutoOr) and isinstance(key.kind.kind, Quantity)
    longest_s = key.kind.kind.high
    assert round_s("switchml", f"{longest_s:g}s", tmp_path) >= longest_s


def test_a_first_timeout_is_shorter_than_the_patience_of_workers(tmp_path: Path) -> None:
    scenario = tmp_path / "tried.yaml"
    scenario.write_text(SCENARIO.format(system="switchml", kind="allreduce", timeout="400ms"))
    load(scenario, ["workload.give_up=401ms"])
    with pytest.raises(ScenarioError, match=r"first_timeout: workers give up after 0\.4 s, before"):
        load(scenario, ["workload.give_up=400ms"])
