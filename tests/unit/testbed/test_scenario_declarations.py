"""Wrong topologies, jobs and faults are refused before anything starts, with the key's path."""

from pathlib import Path

import pytest

from testbed import faults
from testbed.scenario import ScenarioError, load, suite_to_yaml
from testbed.scenario.faults import KINDS, expand
from testbed.scenario.graph import topology
from testbed.scenario.jobs import tenants
from testbed.scenario.schema import FAULT_KINDS
from topologies import Drop, DropList, GilbertElliott, PeriodicDrop

TWO_JOBS = "jobs: [{name: a, workers: h1}, {name: b, workers: h2}]"


def fault(text: str, before: str = "") -> str:
    return f"{before}\nfaults:\n- {{{text}}}"


WRONG = {
    "a key of another kind of topology": (
        "topology: {racks: 2}",
        "topology.racks: has no meaning for rack; allowed: workers",
    ),
    "a ring of two": ("topology: {kind: ring_of_racks, racks: 2}", "topology: racks: 3 to 254"),
    "an odd fat tree": ("topology: {kind: fat_tree, k: 5}", "topology: a fat tree's k is even"),
    "a custom graph of nothing": ("topology: {kind: custom}", "topology: switches: 1 to 254"),
    "a host with two links": (
        "topology: {kind: custom, switches: [s1, s2], links: [h1-s1, h1-s2, s1-s2]}",
        "topology: host h1 has two links, to s1 and s2",
    ),
    "a link that is none": (
        "topology: {kind: custom, switches: [s1], links: [h1]}",
        "topology.links[0]: 'h1' is not two names with a '-' between",
    ),
    "racks that nothing joins": (
        "topology: {kind: custom, switches: [s1, s2], links: [h1-s1, h2-s2]}",
        "topology: job 1: no switch reaches s1 and s2",
    ),
    "more hosts than table entries": (
        "topology: {kind: two_tier, racks: 64, workers: 17}\nworkload: {elements: 10}",
        "topology: 1088 hosts are more than a switch has table entries for; allowed: at most 1024",
    ),
    "a missing file of a graph": (
        "topology: {kind: custom, file: none.yaml}",
        "cannot read the file: No such file",
    ),
    "an override of no direction": (
        'links: {overrides: [{match: "h1->h2", rate: 1mbit}]}',
        "links.overrides[0].match: 'h1->h2' matches no link",
    ),
    "a job of nobody": ("jobs: [{workers: x*}]", "jobs[0].workers: match no host; allowed: h1,"),
    "two jobs of one name": (
        "jobs: [{name: a, workers: h1}, {name: a, workers: h2}]",
        "jobs[1].name: 'a' is the name of another job",
    ),
    "more slots than the switch has": (
        "switch: {slots: 16}\njobs: [{slots: 10}, {slots: 8}]",
        "jobs[1].slots: the jobs' slots together, 18, are more than the switch has; allowed: tog",
    ),
    "no slots left for the third": (
        "switch: {slots: 16}\njobs: [{slots: 10}, {slots: 6}, {}]",
        "jobs[1].slots: the jobs' slots together, 17, are more than the switch has",
    ),
    "overlapping slots": (
        "jobs: [{slots: 10, first_slot: 4}, {slots: 8, first_slot: 12}]",
        "jobs[1].first_slot: slots 12 to 19 overlap those of jobs[0]; allowed: slots that are not",
    ),
    "slots beyond the last": (
        "switch: {slots: 16}\njobs: [{slots: 8, first_slot: 12}]",
        "jobs[0].first_slot: slots 12 to 19 are beyond the switch's; allowed: slots 0 to 15",
    ),
    "no room in a row": (
        "switch: {slots: 16}\njobs: [{slots: 8, first_slot: 4}, {}]",
        "jobs[1]: there are not 8 free slots in a row left",
    ),
    "a place in a dynamic partition": (
        "switch: {partition: dynamic}\njobs: [{slots: 8}]",
        "jobs[0].slots: has no meaning where switch.partition is dynamic; allowed: share",
    ),
    "an end before the start": (
        "jobs: [{start: 2s, end: 1s}]",
        "jobs[0].end: is not after 'start'; allowed: a later time",
    ),
    "a window above the job's slots": (
        "jobs: [{slots: 8, workload: {window: 9}}]",
        "jobs[0].workload.window: a window of 9 chunks is more than the job has slots",
    ),
    "a job's tensors beyond memory": (
        "jobs: [{workload: {elements: 1e9}}]",
        "jobs[0].workload.elements: the tensors of 4 workers need more than 8 GiB",
    ),
    "an unknown link": (
        fault("kind: link_down, link: h9-s1"),
        "faults[0].link: 'h9-s1' matches no link, did you mean 'h4-s1'?; allowed: h1-s1, h2-s1",
    ),
    "an unknown worker": (
        fault("kind: worker_pause, worker: h9"),
        "faults[0].worker: 'h9' matches no worker; allowed: h1,",
    ),
    "an unknown switch": (
        fault("kind: switch_restart, switch: s2"),
        "faults[0].switch: 's2' matches no switch; allowed: s1,",
    ),
    "an unknown job": (
        fault("kind: worker_pause, worker: h1, job: c", TWO_JOBS),
        "faults[0].job: no such job 'c'; allowed: a, b",
    ),
    "a worker of another job": (
        fault("kind: worker_pause, worker: h1, job: b", TWO_JOBS),
        "faults[0].worker: 'h1' matches no worker",
    ),
    "an attacker that is in every job": (
        fault("kind: attack, host: h1, frames: 5"),
        "faults[0].host: 'h1' matches no host",
    ),
    "no target": (fault("kind: link_down"), "faults[0]: link_down needs 'link'; allowed: kind,"),
    "no probability": (fault("kind: loss, link: h1-s1"), "faults[0]: loss needs 'probability'"),
    "a key of another kind": (
        fault("kind: link_down, link: h1-s1, every: 3"),
        "faults[0].every: has no meaning for link_down; allowed: kind, link, at, at_chunk,",
    ),
    "an end of what has none": (
        fault("kind: worker_crash, worker: h1, for: 1s"),
        "faults[0].for: has no meaning for worker_crash",
    ),
    "a time and a chunk": (
        fault("kind: link_down, link: h1-s1, at: 1s, at_chunk: {chunk: 3}"),
        "faults[0].at_chunk: 'at' says when already",
    ),
    "an end before its begin": (
        fault("kind: link_down, link: h1-s1, at: 2s, until: 1s"),
        "faults[0].until: is not after 'at'",
    ),
    "two ends": (
        fault("kind: link_down, link: h1-s1, until: 1s, for: 1s"),
        "faults[0].until: 'for' says how long already",
    ),
    "a round after the last": (
        fault("kind: link_down, link: h1-s1, at_chunk: {round: 3}"),
        "faults[0].at_chunk.round: is after the end: job1 has 3 rounds; allowed: 0 to 2",
    ),
    "a chunk after the last": (
        fault("kind: link_down, link: h1-s1, at_chunk: {chunk: 2740}", "switch: {lanes: 365}"),
        "faults[0].at_chunk.chunk: is after the end: a round of job1 has 2740 chunks",
    ),
    "a chunk after the last, as many lanes as fit": (
        fault("kind: link_down, link: h1-s1, at_chunk: {chunk: 2740}"),
        "faults[0].at_chunk.chunk: is after the end: a round of job1 has 2740 chunks",
    ),
    "more of a period than it has": (
        fault("kind: periodic, link: h1-s1, every: 3, count: 4"),
        "faults[0].count: 4 packets of every 3; allowed: at most 'every'",
    ),
    "loss said by links already": (
        fault('kind: loss, link: "h1->s1", probability: 1%', "links: {loss: 2%}"),
        "faults[0]: loss of h1->s1 for the whole run is said by links.loss already",
    ),
    "loss said by an override already": (
        fault(
            "kind: loss, link: h1-s1, probability: 1%",
            "links: {overrides: [{match: h2-s1, loss: 1%}, {match: h1-*, loss: 2%}]}",
        ),
        "faults[0]: loss of h1-s1 for the whole run is said by links.overrides[1].loss already",
    ),
    "corruption said twice": (
        "faults:\n- {kind: corrupt, link: h1-s1, probability: 1%}\n"
        '- {kind: corrupt, link: "*", probability: 2%}',
        "faults[1]: corrupt of * for the whole run is said by faults[0] already",
    ),
    "a queue that holds no frame": (
        "links: {mtu: 9000, queue: 2kB}",
        "links.queue: 2000 bytes hold no frame of 9014; allowed: at least 9014B",
    ),
    "an override's queue that holds no frame": (
        "links: {mtu: 9000, overrides: [{match: h1-s1, queue: 9kB}]}",
        "links.overrides[0].queue: 9000 bytes hold no frame of 9014",
    ),
    "after the end of every job": (
        fault("kind: link_down, link: h1-s1, at: 5s", "jobs: [{end: 4s}]"),
        "faults[0].at: is after the end of every job, 4 s; allowed: an earlier time",
    ),
    "after every timeout": (
        fault("kind: link_down, link: h1-s1, at: 40s", "timeouts: {round: 10s}"),
        "faults[0].at: is after the run, which 30 s end at the latest",
    ),
    "twice at once": (
        "faults:\n- {kind: link_down, link: h1-s1, for: 2s}\n"
        "- {kind: link_down, link: h*, at: 1s, for: 1s}",
        "faults[1].at: begins before faults[0] has ended at the same h1-s1",
    ),
    "a dead worker that is paused": (
        "faults:\n- {kind: worker_crash, worker: h2}\n- {kind: worker_pause, worker: h2, at: 1s}",
        "faults[1].at: begins before faults[0] has ended at the same h2",
    ),
    "a failure that is no mapping": (
        "expect: {failure: h3}",
        "expect.failure: is not a mapping; allowed: worker: host, job: name, within: time",
    ),
    "a failure within no time": (
        "expect: {failure: {worker: h3, within: 3}}",
        "expect.failure: '3' has no unit",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_declaration_is_one_line_with_its_path(tmp_path: Path, mistake: str) -> None:
    text, expected = WRONG[mistake]
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
    return suite.points[0].scenario


def expanded(scenario) -> list[faults.Fault]:
    graph = topology(scenario)
    return expand(scenario, graph, tenants(scenario, graph))


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
    assert expanded(point(tmp_path, text)) == [
        faults.Fault(0, faults.LinkDown("h1-s1"), at(1.0), 2.0),
        faults.Fault(1, faults.LinkDown("h2-s1"), at(1.0), 2.0),
        faults.Fault(2, faults.RateChange("h3-s1", ("h3->s1",), 2_000_000), at(0.0), 1.0),
        faults.Fault(3, faults.WorkerCrash(2, "h1"), faults.AtChunk(2, 1, 5), 0.0),
        faults.Fault(4, faults.SwitchRestart("s1", 1.0), at(2.0), 1.0),
        faults.Fault(5, faults.Attack("h2", 9, 1.0), at(1.0), None),
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
    scenario = point(tmp_path, text)
    graph = topology(scenario)
    ways = {name: way for link in graph.links for name, _, _, way in link.directions()}
    loss = Drop(0.01)
    assert ways["h1->s1"].impairments == (loss, GilbertElliott(0.01, 0.5), PeriodicDrop(10, 1, 3))
    assert ways["s1->h1"].impairments == (loss, PeriodicDrop(10, 1, 3))
    assert ways["s1->h2"].impairments == (loss,)
    late = faults.Impair("h2-s1", ("s1->h2",), DropList((3, 7)))
    assert expanded(scenario) == [faults.Fault(0, late, faults.AtTime(1.0), None)]


def test_every_kind_of_fault_is_known() -> None:
    assert set(KINDS) == set(FAULT_KINDS)


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
    scenario = point(tmp_path, text)
    first, second, third = tenants(scenario, topology(scenario))
    assert (first.name, first.number, first.hosts) == ("job1", 1, ("h5", "h6", "h1"))
    assert (second.first_slot, second.slots) == (50, 14)
    assert (first.first_slot, first.slots) == (0, 10)
    assert (third.first_slot, third.slots) == (10, 40)
    assert (second.workload.rounds, second.workload.give_up_s) == (2, 1.0)
    assert (second.workload.elements, third.workload.rounds) == (5000, 7)
    assert first.workload.window == 10


def test_a_graph_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "graph.yaml").write_text(
        "switches: [leaf, root]\nlinks: [a-leaf, leaf-root, b-root]"
    )
    scenario = point(
        tmp_path,
        "topology: {kind: custom, file: graph.yaml}\n"
        'links: {overrides: [{match: "leaf->root", rate: 3mbit}]}',
    )
    graph = topology(scenario)
    assert [host.name for host in graph.hosts] == ["a", "b"]
    assert graph.link("leaf-root").a_to_b.rate_bps == 3_000_000
    assert graph.link("leaf-root").b_to_a.rate_bps == 100_000_000
