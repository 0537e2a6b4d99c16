"""Gloo's all-reduce on real links: right sums, through losses and the deaths of workers, by our
switch and by a bridge."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.root

TEXT = """
name: over-tcp
system: gloo
seed: 5
topology: {{kind: {shape}}}
links: {{rate: 50mbit{loss}}}
workload: {{elements: 120_000, dtype: {dtype}, rounds: 3, give_up: 2s, on_failure: {policy}}}
faults: [{faults}]
"""


def text(
    faults: str = "",
    dtype: str = "int32",
    policy: str = "fail",
    loss: str = "",
    shape: str = "rack, workers: 4",
) -> str:
    return TEXT.format(faults=faults, dtype=dtype, policy=policy, loss=loss, shape=shape)


def events(ended: Any, kind: str) -> list[dict[str, Any]]:
    log = (ended.folder / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, log) if event["event"] == kind]


@pytest.mark.long(but=["rack, workers: 3-int32-native"])
@pytest.mark.parametrize("target", ["native", "bridge"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("shape", ["rack, workers: 3", "two_tier, racks: 2, workers: 2"])
def test_sums_are_right(scenario, dtype: str, shape: str, target: str) -> None:
    path = scenario.write(text(dtype=dtype, shape=shape))
    ended = scenario.run(path, "--set", f"switch.target={target}")
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert (metrics["exact"], metrics["rounds"]) == (True, 3)
    assert metrics["link_bound_ratio"] >= 1
    assert metrics["links_as_predicted"] is None and "TCP" in metrics["links_unclear"]
    for link, ways in metrics["links"].items():
        host = link.partition("-")[0]
        if host.startswith("h"):
            sent = metrics["workers"][str(int(host[1:]) - 1)]["bytes_sent"]
            assert ways[f"{link.replace('-', '->')}"]["bytes"] == pytest.approx(sent, rel=0.02)
    assert scenario.processes() == {}


@pytest.mark.long
def test_frames_on_links_are_no_longer_than_the_mtu(scenario) -> None:
    """What TCP sends is cut before it is queued, so that a queue of frames is one."""
    ended = scenario.run(scenario.write(text()), "--set", "links.mtu=1000")
    for ways in ended.metrics["links"].values():
        for way in ways.values():
            assert way["bytes"] <= way["packets"] * 1014


@pytest.mark.long
def test_tcp_repairs_losses_and_says_so(scenario) -> None:
    ended = scenario.run(scenario.write(text(loss=", loss: 1%", dtype="float32")))
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert metrics["exact"] is True
    assert metrics["totals"]["injected_drops"] > 0
    assert metrics["totals"]["retransmitted"] > 0
    for worker in metrics["workers"].values():
        assert worker["window_samples"] > 0
        assert worker["window_segments"] >= worker["window_samples"]


@pytest.mark.long
def test_a_worker_that_is_killed_is_named_at_once(scenario) -> None:
    fault = "{kind: worker_crash, worker: h3, at_chunk: {round: 1, chunk: 50}}"
    ended = scenario.run(scenario.write(text(fault)))
    assert ended.code == 1
    assert ended.metrics["failure"]["worker"] == "h3"
    assert ended.metrics["reason"].startswith("h3: worker 2 exited early with status -9")
    assert "\n" not in ended.metrics["reason"]
    assert (ended.metrics["rounds"], ended.metrics["exact"]) == (1, True)
    assert scenario.processes() == {}


@pytest.mark.long
@pytest.mark.parametrize("host", ["h1", "h3"])
def test_a_worker_comes_back_and_the_round_runs_again(scenario, host: str) -> None:
    """h1 has the store in which all find each other."""
    chunk = "at_chunk: {round: 1, chunk: 50}"
    fault = f"{{kind: worker_restart, worker: {host}, {chunk}, for: 300ms}}"
    ended = scenario.run(scenario.write(text(fault, policy="restart")))
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert (metrics["exact"], metrics["rounds"], metrics["restarts"]) == (True, 3, 1)
    assert scenario.processes() == {}


@pytest.mark.long
def test_the_others_go_on_without_who_is_cut_off(scenario) -> None:
    """All but it answer each other's probes. A round under way is aborted, and a session of fewer
    members begins."""
    fault = "{kind: link_down, link: h2-s1, at_chunk: {round: 1, chunk: 50}, for: 60s}"
    ended = scenario.run(scenario.write(text(fault, policy="survivors")))
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert (metrics["exact"], metrics["rounds"], metrics["restarts"]) == (True, 3, 1)
    assert metrics["lost_workers"] == ["h2"]
    failed = [event["error"] for event in events(ended, "failed")]
    assert failed and all(" of job 1; " in error for error in failed)
    assert scenario.processes() == {}


@pytest.mark.long
def test_a_paused_worker_delays_a_round_and_ends_none(scenario) -> None:
    fault = "{kind: worker_pause, worker: h4, at_chunk: {round: 1, chunk: 50}, for: 700ms}"
    ended = scenario.run(scenario.write(text(fault)))
    assert ended.code == 0, ended.out + ended.err
    assert ended.metrics["allreduce"]["time_s"]["max"] > 0.7
    assert ended.metrics["restarts"] == 0


@pytest.mark.long
@pytest.mark.parametrize("target", ["native", "bridge"])
def test_connections_outlive_a_switch_that_starts_again(scenario, target: str) -> None:
    fault = "{kind: switch_restart, switch: s1, at_chunk: {round: 1, chunk: 50}, for: 200ms}"
    path = scenario.write(text(fault))
    ended = scenario.run(path, "--set", f"switch.target={target}", "--set", "workload.give_up=10s")
    assert ended.code == 0, ended.out + ended.err
    assert (ended.metrics["exact"], ended.metrics["restarts"]) == (True, 0)
    assert ended.metrics["totals"]["retransmitted"] > 0


@pytest.mark.long
def test_no_stranger_ends_a_connection(scenario) -> None:
    path = scenario.write(
        text("{kind: attack, host: h4, at: 20ms, for: 500ms, frames: 1000}")
        + "jobs: [{workers: 'h[1-3]'}]\n"
    )
    ended = scenario.run(path)
    assert ended.code == 0, ended.out + ended.err
    assert ended.metrics["exact"] is True
    assert ended.metrics["totals"]["forged"] > 0
