"""What a user's own program counts, holds and says is in the results of a run in virtual time, and
captures have its packets."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from own_program import SENDER, Change, own_program
from scapy.utils import rdpcap
from series_file import read

from agglab.testbed.cli.main import main
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.run.programs.program import CompileError
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


def counting_program(folder: Path, *changes: Change) -> None:
    """Writes our program with counters of its own of each kind, and a message."""
    own_program(
        folder,
        (SENDER, "    action set_unknown_sender() {",
         "    counter(2, CounterType.packets) seen;\n"
         "    counter(1, CounterType.bytes) seen_bytes;\n"
         "    direct_counter(CounterType.packets_and_bytes) by_member;\n\n"
         "    action set_unknown_sender() {"),
        (SENDER, "        const default_action = set_unknown_sender();\n",
         "        const default_action = set_unknown_sender();\n        counters = by_member;\n"),
        (SENDER, "        members.apply();\n",
         "        members.apply();\n        seen.count(1);\n        seen_bytes.count(0);\n"
         '        log_msg("slot {}", {hdr.aggregation.slot});\n'),
        *changes,
    )  # fmt: skip


def ran(
    folder: Path, *settings: str, changes: Sequence[Change] = ()
) -> tuple[Path, dict[str, Any], str]:
    """Runs the scenario with the program and further changes."""
    counting_program(folder, *changes)
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


@pytest.mark.long
def test_its_counters_are_metrics_over_time_and_the_registers_a_table(tmp_path: Path) -> None:
    settings = ("series.every=50us", "switch.registers=[contributors]")
    folder, metrics, _ = ran(tmp_path, *settings)
    series = read(folder)
    for name, total in metrics["switches"]["s1"]["program"].items():
        counts = [count for _, count in series["switch", "s1", f"program.{name}"]]
        assert sum(counts) == total and 0 < max(counts) < total, name
    assert (folder / "switch-program.seen.vl.json").is_file()

    report = (folder / "report.html").read_text()
    assert "Switch: program.seen_bytes" in report
    row = "<tr><td>contributors of s1</td><td data-of='cells'>16</td><td data-of='not 0'>16</td>"
    assert f"{row}<td class='text' data-of='first values'>3, 3, 3" in report.replace("\n", "")


@pytest.mark.long
def test_a_counter_with_many_cells_is_not_sampled(tmp_path: Path) -> None:
    folder, metrics, _ = ran(tmp_path, changes=[(SENDER, "counter(2,", "counter(1025,")])
    names = {metric for _, _, metric in read(folder) if metric.startswith("program.")}
    assert names == {"program.seen_bytes", "program.by_member"}
    assert metrics["switches"]["s1"]["program"]["seen"] == 2 * CHUNKS


def test_a_counter_without_cells_cannot_run_and_this_is_no_internal_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counting_program(tmp_path, (SENDER, "counter(2,", "counter(0,"))
    (tmp_path / "own.yaml").write_text(TEXT)
    code = main(["run", str(tmp_path / "own.yaml"), "--results", str(tmp_path / "results")])
    metrics = json.loads((tmp_path / "results/own/latest/metrics.json").read_text())
    assert code == 1 and not metrics["ok"]
    said = capsys.readouterr().err.strip()
    assert said.startswith("a switch cannot run its program: ") and said.count("\n") == 0
    assert said.endswith("no counter is called 'SwitchmlIngress.sender.seen'")


@pytest.mark.long
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


@pytest.mark.long
def test_a_program_without_counters_of_its_own_leaves_the_results_as_they_were(
    tmp_path: Path,
) -> None:
    folder, metrics, _ = ran(tmp_path, "switch.program=switchml")
    assert "program" not in metrics["switches"]["s1"]
    assert not (folder / "program.json").exists()
