"""Every system that runs in virtual time, under every kind of fault that may happen to any of them.

A system's own tests go further. This table makes sure that none of them is forgotten, and neither
is a system that is added."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from system_runs import run_in

from agglab.testbed import systems
from agglab.testbed.schema.system_names import built_in

SYSTEMS = [name for name in built_in() if "virtual" in systems.find(name).abilities.clocks]
WORKLOADS = {
    "allreduce": "elements: 10_000, rounds: 2",
    "push_pull": "elements: 4_000, rounds: 2",
    "async_sgd": "updates: 20, rounds: 1",
}
"""A small workload for every system: the first kind of these that it supports."""
SCENARIO = """
name: tried
backend: virtual
system: {system}
topology: {{kind: rack, workers: 4, servers: 2}}
links: {{rate: 50mbit, queue: 2MB}}
workload: {{kind: {kind}, {sizes}, on_failure: restart, give_up: 300ms}}
faults: {faults}
"""
MIDDLE = "at_chunk: {round: 0, chunk: 3}"
FAULTS = {
    "nothing": "[]",
    "loss": '[{kind: loss, link: "*", probability: 2%}]',
    "duplication": '[{kind: duplicate, link: "*", probability: 5%}]',
    "reordering": '[{kind: reorder, link: "*", probability: 5%, delay: 2ms}]',
    "all three": '[{kind: loss, link: "*", probability: 2%}, '
    '{kind: duplicate, link: "*", probability: 5%}, '
    '{kind: reorder, link: "*", probability: 5%, delay: 2ms}]',
    "a worker restarts": f"[{{kind: worker_restart, worker: h2, {MIDDLE}, for: 20ms}}]",
    "the switch restarts": f"[{{kind: switch_restart, switch: s1, {MIDDLE}, for: 20ms}}]",
    "the switch loses its tables": f"[{{kind: switch_reprogram, switch: s1, {MIDDLE}}}]",
}
NO_RESTART = ("nothing", "loss", "duplication", "reordering", "all three")


@cache
def result(system: str, fault: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the metrics of a small run with a fault of FAULTS."""
    can = systems.find(system).abilities.workloads
    kind = next(kind for kind in WORKLOADS if kind in can)
    text = SCENARIO.format(system=system, kind=kind, sizes=WORKLOADS[kind], faults=FAULTS[fault])
    with TemporaryDirectory() as folder:
        return run_in(Path(folder))(text)


def duplicated(metrics: dict[str, Any]) -> int:
    return sum(way["duplicated"] for link in metrics["links"].values() for way in link.values())


@pytest.mark.long(
    but=["atp-nothing", "esa-the switch loses its tables", "esa-nothing", "esa-the switch restarts"]
)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_fault_changes_no_result(system: str, fault: str) -> None:
    code, metrics = result(system, fault)
    assert (code, metrics["reason"], metrics["exact"]) == (0, "", True)
    assert metrics["wrong_results"] == metrics["wrong_sums"] == 0
    assert metrics["faults"]["never_begun"] == 0
    assert metrics["restarts"] <= (fault not in NO_RESTART)
    if fault != "nothing":
        undisturbed = result(system, "nothing")[1]
        assert metrics["allreduce"]["time_s"]["all"] != undisturbed["allreduce"]["time_s"]["all"]


@pytest.mark.long(but=["atp"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_faults_happened(system: str) -> None:
    assert result(system, "loss")[1]["totals"]["injected_drops"] > 0
    assert duplicated(result(system, "duplication")[1]) > 0
    assert result(system, "a worker restarts")[1]["restarts"] == 1


@pytest.mark.long(but=["libra-nothing", "esa-nothing"])
@pytest.mark.parametrize("fault", NO_RESTART)
@pytest.mark.parametrize("system", SYSTEMS)
def test_links_carry_what_was_predicted_or_copies_make_it_unclear(system: str, fault: str) -> None:
    metrics = result(system, fault)[1]
    unclear = "copies of packets" in metrics["links_unclear"] and duplicated(metrics) > 0
    assert metrics["links_as_predicted"] is (None if unclear else True)
