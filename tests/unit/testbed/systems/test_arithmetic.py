"""What systems between hosts compute: bytes by direction, bounds, truth, sessions; by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agglab.testbed.scenario import ResolvedScenario, ScenarioError, load
from agglab.testbed.systems.base import Bounds, ByteRange, NumberedSessions
from agglab.testbed.systems.forwarding import Flow, bytes_by_direction, retransmitted_bytes
from agglab.topologies import rack

RING_HEADER_BYTES, LOWER_HEADER_BYTES = 24, 42  # systems/ring/README.md
LANES = 100
FRAME_BITS = 8 * (LOWER_HEADER_BYTES + RING_HEADER_BYTES + 4 * LANES)
FLOWS = [Flow("h1", "h2", 5), Flow("h1", "h3", 7), Flow("h3", "h2", 11)]


def resolved(folder: Path, text: str, lanes: int = LANES) -> ResolvedScenario:
    path = folder / "asked.yaml"
    path.write_text(f"system: ring\nbackend: virtual\nswitch: {{lanes: {lanes}}}\n{text}")
    (point,) = load(path).points
    return point.resolved


def bounds(run: ResolvedScenario) -> Bounds:
    (job,) = run.jobs
    return run.system.bounds(run, run.whole(job))


def test_flows_over_one_direction_add_up() -> None:
    assert bytes_by_direction(rack(3), FLOWS) == {
        "h1->s1": 12,
        "s1->h2": 16,
        "s1->h3": 7,
        "h3->s1": 11,
    }


def test_what_a_host_sent_again_crossed_its_own_link_whole_and_others_in_part() -> None:
    assert retransmitted_bytes(rack(3), FLOWS, {"h1": 100, "h2": 9, "h3": 0}) == {
        "h1->s1": ByteRange(100, 100),
        "s1->h2": ByteRange(0, 100),
        "s1->h3": ByteRange(0, 100),
        "h3->s1": ByteRange(0, 0),
    }


def test_agents_of_one_host_may_have_sent_it_to_each_other() -> None:
    own = [*FLOWS, Flow("h1", "h1", 3)]
    assert retransmitted_bytes(rack(3), own, {"h1": 100})["h1->s1"] == ByteRange(0, 100)


def test_what_goes_to_the_own_host_by_way_of_the_switch_may_have_crossed_both_directions() -> None:
    flows = [Flow("h1", "h1", 3, by_switch=True), Flow("h1", "h2", 3, by_switch=True)]
    again = retransmitted_bytes(rack(3), flows, {"h1": 100, "h2": 9})
    assert again == dict.fromkeys(("h1->s1", "s1->h1", "s1->h2"), ByteRange(0, 100))


def test_the_slowest_link_that_is_crossed_bounds_a_round(tmp_path: Path) -> None:
    """Two workers: each sends four packets, two a step, and is sent an acknowledgement or more."""
    rates = "links: {rate: 8mbit, overrides: [{match: 'h2->s1', rate: 1mbit}]}\n"
    job = f"topology: {{workers: 2}}\nworkload: {{elements: {4 * LANES}, window: 4}}\n"
    found = bounds(resolved(tmp_path, rates + job))
    assert found.payload_s == pytest.approx(4 * LANES * 32 / 1e6)
    assert found.link_s == pytest.approx(4 * FRAME_BITS / 1e6)
    assert found.lossy_s == found.link_s


def test_losses_and_windows_bound_it_too(tmp_path: Path) -> None:
    links = "links: {rate: 8mbit, loss: 20%, delay: 10ms}\n"
    job = f"topology: {{workers: 2}}\nworkload: {{elements: {4 * LANES}, window: 3}}\n"
    found = bounds(resolved(tmp_path, links + job))
    assert found.lossy_s == pytest.approx(found.link_s / 0.8)
    there_s = 2 * (FRAME_BITS / 8e6 + 0.010)
    back_s = 2 * (LOWER_HEADER_BYTES * 8 / 8e6 + 0.010)
    assert found.window_share == pytest.approx(3 * FRAME_BITS / 8e6 / (there_s + back_s))


def test_integers_are_summed_modulo_2_to_the_32(tmp_path: Path) -> None:
    run = resolved(tmp_path, "topology: {workers: 2}\nworkload: {dtype: int32, elements: 3}\n")
    truth = run.system.right_results(run, run.whole(run.jobs[0]), None).truth
    inputs = [np.array(values, np.int32) for values in ([2, -5, 2**31 - 1], [-7, -1, 1])]
    assert truth(0, inputs).values.tolist() == [-5, -6, -(2**31)]


def test_each_session_of_a_job_has_another_number(tmp_path: Path) -> None:
    run = resolved(tmp_path, "jobs: [{name: a}, {name: b}]\n")
    sessions = NumberedSessions()
    numbers = [sessions.begin(job)["session"] for job in (*run.jobs, *run.jobs)]
    assert numbers == [1, 1, 2, 2]


def test_a_window_or_packet_that_cannot_be_is_refused(tmp_path: Path) -> None:
    assert resolved(tmp_path, "workload: {window: 4096}\n").window == 4096
    with pytest.raises(ScenarioError, match="a window of 4097 packets is more than ring supports"):
        resolved(tmp_path, "workload: {window: 4097}\n")
    most = (576 - 28 - RING_HEADER_BYTES) // 4
    assert resolved(tmp_path, "links: {mtu: 576}\n", most).lanes == most
    with pytest.raises(ScenarioError, match=f"{most + 1} lanes do not fit an MTU of 576 bytes"):
        resolved(tmp_path, "links: {mtu: 576}\n", most + 1)
