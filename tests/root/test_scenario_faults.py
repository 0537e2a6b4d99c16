"""Trees, jobs, faults and recovery on real packets: a few scenarios, each with its expectations."""

from __future__ import annotations

import subprocess

import pytest

pytestmark = pytest.mark.root

SMALL = ("--set", "workload.elements=100_000")


def interfaces() -> str:
    return subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["two-racks", "leaf-spine"])
def test_trees_with_loss_are_exact_and_carry_what_was_predicted(scenario, name: str) -> None:
    ended = scenario.run(name, *SMALL, "--set", "workload.rounds=2")
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert metrics["exact"] is metrics["links_as_predicted"] is True
    root = "s3" if name == "two-racks" else "s4"
    uplink, worker = metrics["links"][f"s1-{root}"], metrics["links"]["h1-s1"]
    assert uplink[f"s1->{root}"]["predicted_bytes"] == worker["h1->s1"]["predicted_bytes"] > 0


def test_two_jobs_share_a_switch_and_foreign_packets_change_nothing(scenario) -> None:
    ended = scenario.run("attack")
    assert ended.code == 0, ended.out + ended.err
    jobs = ended.metrics["jobs"]
    assert all(job["exact"] and job["rounds"] == 4 for job in jobs.values())
    packets = ended.metrics["switches"]["s1"]["packets"]
    assert packets["refused"] + packets["malformed"] == 3000


def test_a_pulled_link_is_a_failure_that_names_who_is_missing(scenario) -> None:
    before = interfaces()
    ended = scenario.run("link-pulled", "--set", "workload.give_up=1s")
    assert ended.code == 0, ended.out + ended.err
    assert "h2: worker 1 never sent chunks " in ended.metrics["failure"]["reason"]
    assert scenario.processes() == {}
    assert interfaces() == before


@pytest.mark.parametrize("name", ["survivors", "switch-restart", "worker-restart"])
def test_recovered_as_declared_and_nothing_is_left(scenario, name: str) -> None:
    before = interfaces()
    ended = scenario.run(name)
    assert ended.code == 0, ended.out + ended.err
    assert len(ended.events("fault")) >= 1
    assert ended.metrics["exact"] is True
    assert scenario.processes() == {}
    assert interfaces() == before
