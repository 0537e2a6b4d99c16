"""Wrong topologies, jobs and faults are refused before anything starts, with the key's path."""

from dataclasses import fields
from pathlib import Path

import pytest
from scenario_mistakes import OF_SYSTEMS, WRONG

import agglab.hosts.workloads
from agglab.testbed.scenario import ScenarioError, load, suite_to_yaml, workloads
from agglab.testbed.schema import faults
from agglab.testbed.schema.fault_kinds import KINDS, FaultEntry
from agglab.testbed.schema.key import yaml_name
from agglab.topologies import Drop, DropList, GilbertElliott, PeriodicDrop


def test_a_scenario_names_the_workloads_that_hosts_and_testbed_know() -> None:
    assert list(agglab.hosts.workloads.KINDS) == list(workloads.KINDS)


@pytest.mark.parametrize("mistake", {**WRONG, **OF_SYSTEMS})
def test_a_wrong_declaration_is_one_line_with_its_path(tmp_path: Path, mistake: str) -> None:
    text, expected = {**WRONG, **OF_SYSTEMS}[mistake]
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert len(caught.value.problems) == 1, str(caught.value)
    assert expected in str(caught.value)


def point(tmp_path: Path, text: str):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    suite = load(path)
    again = tmp_path / "again.yaml"
    again.write_text(suite_to_yaml(suite))
    assert load(again).points == suite.points, "a resolved scenario loads as itself"
    return suite.points[0].resolved


def test_patterns_times_and_kinds_become_values(tmp_path: Path) -> None:
    text = """
jobs: [{name: a, workers: h1}, {name: b, workers: [h2, h1]}]
faults:
- {kind: link_down, link: "h[12]-s1", at: 1s, until: 3s}
- {kind: rate, link: "h3->s1", rate: 2mbit, for: 1s}
- {kind: worker_restart, worker: h1, job: b, at_chunk: {job: b, round: 1, chunk: 5}}
- {kind: switch_restart, switch: s1, at: 2s, for: 1s}
- {kind: attack, host: h2, frames: 9, at: 1s}
"""
    at = faults.AtTime
    assert list(point(tmp_path, text).faults) == [
        faults.Fault(0, "link_down", faults.LinkDown("h1-s1"), at(1.0), 2.0),
        faults.Fault(1, "link_down", faults.LinkDown("h2-s1"), at(1.0), 2.0),
        faults.Fault(2, "rate", faults.RateChange("h3-s1", ("h3->s1",), 2_000_000), at(0.0), 1.0),
        faults.Fault(
            3, "worker_restart", faults.AgentCrash(2, "h1", "worker"), faults.AtChunk(2, 1, 5), 0.0
        ),
        faults.Fault(4, "switch_restart", faults.SwitchRestart("s1", 1.0), at(2.0), 1.0),
        faults.Fault(5, "attack", faults.Attack("h2", 9, 1.0), at(1.0), None),
    ]


def test_an_impairment_without_time_is_the_links_own(tmp_path: Path) -> None:
    text = """
topology: {workers: 2}
links: {loss: 1%}
faults:
- {kind: gilbert_elliott, link: "h1->s1", to_bad: 1%, to_good: 50%, bad_loss: 100%}
- {kind: periodic, link: h1-s1, every: 10, offset: 3}
- {kind: drop_list, link: "s1->h2", packets: [7, 3, 7], at: 1s}
"""
    resolved = point(tmp_path, text)
    graph = resolved.graph
    ways = {name: way for link in graph.links for name, _, _, way in link.directions()}
    loss = Drop(0.01)
    assert ways["h1->s1"].impairments == (loss, GilbertElliott(0.01, 0.5), PeriodicDrop(10, 1, 3))
    assert ways["s1->h1"].impairments == (loss, PeriodicDrop(10, 1, 3))
    assert ways["s1->h2"].impairments == (loss,)
    late = faults.Impair("h2-s1", ("s1->h2",), DropList((3, 7)))
    assert resolved.faults == (faults.Fault(0, "drop_list", late, faults.AtTime(1.0), None),)


def test_every_kind_of_fault_is_one_thing() -> None:
    """A fault, or an impairment, of a target and with keys that entries have."""
    own = {yaml_name(item) for item in fields(FaultEntry)}
    for kind in KINDS.values():
        assert (kind.action is None) != (kind.impairment is None)
        assert set(kind.keys) <= own


def test_jobs_inherit_the_workload_and_share_the_slots(tmp_path: Path) -> None:
    text = """
topology: {workers: 6}
switch: {slots: 64}
workload: {elements: 5000, dtype: int32, rounds: 7}
jobs:
- {workers: ["h[56]", h1]}
- {name: second, slots: 14, first_slot: 50, workload: {rounds: 2, give_up: 1s}}
- {share: 4, workers: h2}
"""
    first, second, third = point(tmp_path, text).jobs
    assert (first.name, first.number, first.hosts) == ("job1", 1, ("h5", "h6", "h1"))
    places = [(job.first_slot, job.slots) for job in (first, second, third)]
    assert places == [(0, 10), (50, 14), (10, 40)]
    assert (second.rounds, second.give_up_s) == (2, 1.0)
    assert (second.elements, third.rounds) == (5000, 7)
    assert first.window == 10


@pytest.mark.parametrize(
    ("more", "hosts"),
    [
        ("", ["h1", "h2", "h3", "h4"]),
        ("jobs: [{workers: '*'}]", ["h1", "h2", "h3", "h4"]),
        ("jobs: [{workers: ['p*', h1]}]", ["h1"]),
        ("jobs: [{workers: [p2, '?1']}]", ["p2", "h1"]),
        ("system: ps\nps: {servers: 'p*'}", ["h1", "h2", "h3", "h4"]),
    ],
)
def test_hosts_for_servers_are_workers_only_where_they_are_named(
    tmp_path: Path, more: str, hosts: list[str]
) -> None:
    shape = "topology: {kind: two_tier, racks: 2, workers: 2, servers: 1}\n"
    resolved = point(tmp_path, shape + more)
    names = [host.name for host in resolved.graph.hosts]
    assert names == ["h1", "h2", "p1", "h3", "h4", "p2"]
    (job,) = resolved.jobs
    assert list(job.hosts) == hosts


def test_a_graph_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "graph.yaml").write_text(
        "switches: [leaf, root]\nlinks: [a-leaf, leaf-root, b-root]"
    )
    graph = point(
        tmp_path,
        "topology: {kind: custom, file: graph.yaml}\n"
        'links: {overrides: [{match: "leaf->root", rate: 3mbit}]}',
    ).graph
    assert [host.name for host in graph.hosts] == ["a", "b"]
    assert graph.link("leaf-root").a_to_b.rate_bps == 3_000_000
    assert graph.link("leaf-root").b_to_a.rate_bps == 100_000_000
