"""Servers that die, come back, stand still or are cut off, on real links."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.root

TEXT = """
name: served
system: ps
{servers}
topology: {{workers: 4}}
links: {{rate: 50mbit}}
workload: {{elements: 60_000, dtype: int32, rounds: 3, give_up: 1s, on_failure: {policy}}}
jobs: [{{workers: {workers}}}]
faults: [{{{fault}, at_chunk: {{round: 1, chunk: 20}}}}]
"""
SERVED_BY = {
    "dedicated": ("h4", 0, "ps: {servers: [h4]}", "[h1, h2, h3]"),
    "beside": ("h2", 1, "", "[h1, h2, h3, h4]"),
}


def text(kind: str, policy: str, fault: str) -> str:
    host, _, servers, workers = SERVED_BY[kind]
    return TEXT.format(
        servers=servers, workers=workers, policy=policy, fault=fault.replace("SERVER", host)
    )


@pytest.mark.long(but=["dedicated-fail"])
@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        ("dedicated", "fail"),
        ("dedicated", "restart"),
        ("dedicated", "survivors"),
        ("beside", "survivors"),
    ],
)
def test_a_server_that_is_killed_for_good_ends_the_job(scenario, kind: str, policy: str) -> None:
    ended = scenario.run(scenario.write(text(kind, policy, "kind: server_crash, server: SERVER")))
    host, number, *_ = SERVED_BY[kind]
    assert ended.code == 1, ended.out + ended.err
    assert (ended.metrics["failure"]["worker"], ended.metrics["rounds"]) == (host, 1)
    reason = ended.metrics["reason"]
    assert reason.startswith(f"{host}: server {number} exited early with status -9")
    assert f"(faults: server_crash {host} " in reason
    assert ended.metrics["exact"] is True
    assert scenario.processes() == {}


@pytest.mark.long
@pytest.mark.parametrize("kind", SERVED_BY)
def test_a_server_comes_back_and_the_round_runs_again(scenario, kind: str) -> None:
    fault = "kind: server_restart, server: SERVER, for: 300ms"
    ended = scenario.run(scenario.write(text(kind, "restart", fault)))
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert (metrics["exact"], metrics["rounds"], metrics["restarts"]) == (True, 3, 1)
    assert scenario.processes() == {}


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("dedicated", "kind: server_pause, server: SERVER, for: 300ms"),
        ("beside", "kind: server_slow, server: SERVER, for: 300ms, delay: 2ms"),
    ],
)
def test_a_server_that_is_held_up_is_waited_for(scenario, kind: str, fault: str) -> None:
    ended = scenario.run(scenario.write(text(kind, "fail", fault)))
    assert ended.code == 0, ended.out + ended.err
    assert (ended.metrics["exact"], ended.metrics["rounds"]) == (True, 3)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["fail", "survivors"])
def test_a_server_that_is_cut_off_is_named(scenario, policy: str) -> None:
    ended = scenario.run(scenario.write(text("dedicated", policy, "kind: link_down, link: h4-s1")))
    assert ended.code == 1, ended.out + ended.err
    assert ended.metrics["failure"]["worker"] == "h4"
    assert ended.metrics["reason"].startswith("h4: server 0 never sent chunk")


@pytest.mark.long
def test_a_pulled_link_of_a_ring_names_its_host(scenario) -> None:
    pulled = text("beside", "fail", "kind: link_down, link: h3-s1").replace("ps\n", "ring\n")
    ended = scenario.run(scenario.write(pulled))
    assert ended.code == 1, ended.out + ended.err
    assert ended.metrics["failure"]["worker"] == "h3"
    assert ended.metrics["reason"].startswith("h3: worker 2 never sent chunk")
