"""Trees, jobs, faults and recovery on real packets: a few scenarios, each with its expectations."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest

from agglab.testbed.systems import spoofing
from agglab.testbed.systems.summing.attack import KINDS

pytestmark = pytest.mark.root

SMALL = ("--set", "workload.elements=100_000")


def interfaces() -> str:
    return subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout


@pytest.mark.long
@pytest.mark.parametrize("name", ["two-racks", "leaf-spine"])
def test_trees_with_loss_are_exact_and_carry_what_was_predicted(scenario, name: str) -> None:
    ended = scenario.run(name, *SMALL, "--set", "workload.rounds=2")
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert metrics["exact"] is metrics["links_as_predicted"] is True
    root = "s3" if name == "two-racks" else "s4"
    uplink, worker = metrics["links"][f"s1-{root}"], metrics["links"]["h1-s1"]
    assert uplink[f"s1->{root}"]["predicted_bytes"] == worker["h1->s1"]["predicted_bytes"] > 0


@pytest.mark.long
def test_two_jobs_share_switches_and_foreign_frames_change_nothing(scenario) -> None:
    ended = scenario.run("attack")
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert all(job["exact"] and job["rounds"] == 4 for job in metrics["jobs"].values())
    assert all(not job["restarts"] for job in metrics["jobs"].values())
    workers = [w for job in metrics["jobs"].values() for w in job["workers"].values()]
    assert all(worker["network_errors"] and not worker["malformed"] for worker in workers)
    refused = Counter()
    for kind, count in metrics["attack"].items():
        refused[KINDS[kind].counted] += count
    counted = metrics["switches"]["s2"]["packets"]  # both attackers' switch
    assert sum(refused.values()) == 3500
    # Hosts tell the attacker that a port is unreachable, as often as their kernel allows.
    assert counted["forwarded"] >= refused.pop("forwarded")
    assert {kind: counted[kind] for kind in refused} == refused


IMPOSTORS = """
name: spoofing
system: {system}
topology: {{kind: two_tier, racks: 2, workers: 2}}
links: {{rate: 100mbit}}
workload: {{elements: 300_000, rounds: 4}}
jobs: [{{name: victim, workers: "h[123]"}}]
faults: [{{kind: attack, host: h4, frames: 1000, for: 100ms}}]
expect: {{exact: true}}
"""


@pytest.mark.long
@pytest.mark.parametrize("system", ["ring", "ps"])
def test_spoofed_frames_are_stopped_at_their_own_switch(scenario, system: str) -> None:
    ended = scenario.run(scenario.write(IMPOSTORS.format(system=system)))
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert not metrics["findings"] and metrics["restarts"] == 0
    assert all(not worker["malformed"] for worker in metrics["workers"].values())
    counted = Counter()
    for kind, count in metrics["attack"].items():
        counted[spoofing.KINDS[kind].counted] += count
    first = metrics["switches"]["s2"]["packets"]
    assert sum(counted.values()) == 1000 and counted["forged"] > 500
    assert {kind: first[kind] for kind in ("forged", "malformed")} == {
        kind: counted[kind] for kind in ("forged", "malformed")
    }


@pytest.mark.long
def test_a_pulled_link_is_a_failure_that_names_who_is_missing(scenario) -> None:
    before = interfaces()
    ended = scenario.run("link-pulled", "--set", "workload.give_up=1s")
    assert ended.code == 0, ended.out + ended.err
    assert "h2: worker 1 never delivered chunks " in ended.metrics["failure"]["reason"]
    assert scenario.processes() == {}
    assert interfaces() == before


@pytest.mark.long(but=["survivors"])
@pytest.mark.parametrize("name", ["survivors", "switch-restart", "worker-restart"])
def test_recovered_as_declared_and_nothing_is_left(scenario, name: str) -> None:
    before = interfaces()
    ended = scenario.run(name)
    assert ended.code == 0, ended.out + ended.err
    assert len(ended.events("fault")) >= 1
    assert ended.metrics["exact"] is True
    assert scenario.processes() == {}
    assert interfaces() == before


@pytest.mark.long
def test_what_was_sent_again_and_lost_counts_also_where_rounds_fail(scenario) -> None:
    """The dead worker's kernel answers the next results with ICMP errors: they are no refused
    contributions."""
    ended = scenario.run("worker-killed")
    assert ended.code == 0, ended.out + ended.err
    packets, workers = ended.metrics["switches"]["s1"]["packets"], ended.metrics["workers"]
    assert packets["refused"] == packets["malformed"] == 0
    assert 1 <= packets["host_errors"] <= 20
    again = sum(worker["retransmitted"] for worker in workers.values())
    assert again == packets["duplicate"] + packets["stale"]  # none, if all are told soon
    assert ended.metrics["accounts"]["balanced"] is None


@pytest.mark.long
def test_frames_are_lost_on_the_link_that_was_down(scenario) -> None:
    ended = scenario.run("link-down")
    assert ended.code == 0, ended.out + ended.err
    lost = {
        link: sum(way["lost_down"] for way in ways.values())
        for link, ways in ended.metrics["links"].items()
    }
    assert ended.metrics["totals"]["lost_down"] == lost.pop("h2-s1") > 0
    assert not any(lost.values())
