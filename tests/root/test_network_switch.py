"""The native switch in a network: started, programmed over P4Runtime, forwarding, counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from network_case import case

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[2]
LANES = 32


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """p4/switchml.p4 with few lanes, compiled."""
    folder = tmp_path_factory.mktemp("program")
    paths = {"program": str(folder / "switchml.json"), "p4info": str(folder / "p4info.txtpb")}
    command = [sys.executable, "-m", "p4native.compiler", "p4/switchml.p4", "-D", f"LANES={LANES}"]
    command += ["-o", paths["program"], "--p4runtime-files", paths["p4info"]]
    subprocess.run(command, cwd=ROOT, check=True)
    return paths


def test_hosts_talk_through_the_switch(tmp_path: Path, program: dict[str, str]) -> None:
    got = case(tmp_path, "through_switch", **program)
    assert "2 received, 0% packet loss" in got["ping"]
    assert "1 received, 0% packet loss" in got["routed"], "by IP, through the switch's own MAC"
    assert got["same"], "TCP carries what was sent"
    assert got["ring_drops"] == 0
    assert got["cpu_s"] > 0
    # A frame that a switch sent, its neighbour saw, and the switch's own count is the kernel's.
    for direction in got["directions"]:
        assert direction["packets"] == direction["seen"]
        assert direction["dropped_by_queue"] == direction["dropped_injected"] == 0
    received = {d["direction"]: d["packets"] for d in got["directions"]}
    for port in ("1", "2", "3"):
        assert got["ports"][port]["rx_packets"] == received[f"h{port}->s1"]
        assert got["ports"][port]["tx_packets"] == received[f"s1->h{port}"]


def test_an_aggregation_and_its_counters(tmp_path: Path, program: dict[str, str]) -> None:
    got = case(tmp_path, "aggregate", lanes=LANES, **program)
    # Job 5 is the second: index 1 of the counters. One chunk from each of two workers.
    assert got["contribution_new"] == {"0": [0, 0], "1": [2, 2 * got["frame_bytes"]]}
    assert got["chunk_complete"]["1"][0] == 1
    # The third host is not of that job: refused, counted under nobody's index (16).
    assert got["contribution_refused"]["16"][0] == 1
    expected = [3 * lane + 100 for lane in range(LANES)]
    assert got["sums"] == {"h3": expected, "h1": expected}
    assert got["uninvited"] == 0


def test_a_killed_switch_is_noticed(tmp_path: Path, program: dict[str, str]) -> None:
    got = case(tmp_path, "switch_killed", **program)
    assert got["before"] is None
    assert got["after"] == "s1: the switch was killed by SIGKILL"
    assert got["asked"].startswith(
        "s1: the switch was killed by SIGKILL: reading counter malformed:"
    )


def test_a_refused_entry_is_the_switchs_own_words(tmp_path: Path, program: dict[str, str]) -> None:
    got = case(tmp_path, "refused_entry", **program)
    assert "write" in got["says"] and "ALREADY_EXISTS" in got["says"]
    assert "\n" not in got["says"]


@pytest.mark.long
def test_captures_are_written_where_asked(tmp_path: Path, program: dict[str, str]) -> None:
    pcaps = tmp_path / "pcap"
    pcaps.mkdir()
    case(tmp_path, "through_switch", pcap_dir=str(pcaps), **program)
    names = sorted(path.name for path in pcaps.iterdir())
    assert names == [f"s1-eth{port}_{way}.pcap" for port in (1, 2, 3) for way in ("in", "out")]


@pytest.mark.long
def test_a_ring_of_switches(tmp_path: Path, program: dict[str, str]) -> None:
    got = case(tmp_path, "ring", lanes=LANES, **program)
    assert got["heard"] == [["ff" * 6], ["ff" * 6]], (
        "a broadcast comes once, though there is a loop"
    )
    assert got["sent"] == 1 + 2 + 2, "h1's, two cables of the tree, two other hosts"
    expected = [[6 * (lane + 1) for lane in range(LANES)]] * 3
    assert got["sums"] == expected
    assert got["tags"] == [[0, 1]] * 3, "every switch took part, with one cell"
    assert got["reprogrammed"] == 0
    assert got["again"] == expected
    assert got["cpu_names"] == ["switch-s1", "switch-s2", "switch-s3"]
