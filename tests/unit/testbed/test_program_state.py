"""What a user's own program counts, holds and says is in the results of a run in virtual time, and
captures have its packets."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import rdpcap

from agglab.testbed.paths import REPOSITORY
from agglab.testbed.program import CompileError
from agglab.testbed.run import run
from agglab.testbed.scenario import load

TEXT = """
name: own
backend: virtual
topology: {workers: 2}
switch: {program: own.p4, lanes: 64, slots: 8}
workload: {elements: 640, dtype: int32, rounds: 2}
"""
CHUNKS = 2 * (10 + 1)
"""Of two rounds of ten chunks, each of which begins with an opening."""


def own_program(folder: Path) -> None:
    """Writes our program with counters of its own of each kind, and a message."""
    source = (REPOSITORY / "p4/switchml.p4").read_text()
    for old, new in [
        ("    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_new;",
         "    counter(2, CounterType.packets) seen;\n"
         "    counter(1, CounterType.bytes) seen_bytes;\n"
         "    direct_counter(CounterType.packets_and_bytes) by_member;\n"
         "    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_new;"),
        ("        const default_action = set_unknown_sender();\n",
         "        const default_action = set_unknown_sender();\n        counters = by_member;\n"),
        ("        members.apply();\n",
         "        members.apply();\n        seen.count(1);\n        seen_bytes.count(0);\n"
         '        log_msg("slot {}", {hdr.aggregation.slot});\n'),
    ]:  # fmt: skip
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    (folder / "own.p4").write_text(source)


def ran(folder: Path, *settings: str) -> tuple[Path, dict[str, Any], str]:
    own_program(folder)
    path = folder / "own.yaml"
    path.write_text(TEXT)
    out = io.StringIO()
    run(load(path, settings), folder / "results", settings, out)
    result = folder / "results/own/latest"
    return result, json.loads((result / "metrics.json").read_text()), out.getvalue()


def test_what_a_program_counts_holds_and_says(tmp_path: Path) -> None:
    expected = "expect={switches.s1.program.seen: 44, switches.s1.program.by_member: {max: 44}}"
    asked = ("switch.registers=[tags, contributors]", "switch.log=debug", "switch.pcap=true")
    folder, metrics, out = ran(tmp_path, expected, *asked)
    assert metrics["ok"], metrics["reason"]
    counted = metrics["switches"]["s1"]["program"]
    packets = 2 * CHUNKS
    received = rdpcap(str(folder / "pcap/s1-eth1_in.pcap"))
    assert counted["seen"] == counted["by_member"] == packets == 2 * len(received)
    assert counted["seen_bytes"] == 2 * sum(len(packet) for packet in received)

    state = json.loads((folder / "program.json").read_text())["s1"]
    assert list(state["counters"]["seen"]) == ["1"]
    assert [cell["packets"] for cell in state["counters"]["by_member"].values()] == [22, 22]
    assert set(state["registers"]["contributors"]["not_zero"].values()) == {3}
    assert state["registers"]["tags"]["cells"] == 16

    said = (folder / "logs/switch-s1.log").read_text().splitlines()
    assert len(said) == packets and said[0].endswith("log: slot 0")
    assert "Counters of the P4 program" in (folder / "report.html").read_text()
    assert "log_msg" not in out


def test_results_are_sent_to_each_port_once(tmp_path: Path) -> None:
    folder, _, out = ran(tmp_path, "switch.pcap=true")
    for port in (1, 2):
        sent = rdpcap(str(folder / f"pcap/s1-eth{port}_out.pcap"))
        assert len(sent) == CHUNKS
        times = [float(packet.time) for packet in sent]
        assert times == sorted(times) and times[0] > 0
    assert "own.p4 calls log_msg once, which only switch.log: debug writes" in out


def test_a_register_that_the_program_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"no register 'tag', did you mean 'tags'\?; allowed: "):
        ran(tmp_path, "switch.registers=[tag]")


def test_a_program_without_counters_of_its_own_leaves_the_results_as_they_were(
    tmp_path: Path,
) -> None:
    folder, metrics, _ = ran(tmp_path, "switch.program=switchml")
    assert "program" not in metrics["switches"]["s1"]
    assert not (folder / "program.json").exists()
