"""Networks for other toolkits: what they read is what the scenario says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from agglab.testbed.cli import main
from agglab.testbed.cli.export import full_names
from agglab.testbed.run.programs import user_entries
from agglab.testbed.run.programs.prepare import all_entries
from agglab.testbed.scenario import find, load
from agglab.testbed.systems.plan import Entries
from p4native.switch import simple_switch
from p4native.switch.program import Program

ROOT = Path(__file__).parents[4]
SCENARIO = """
topology: {kind: two_tier, racks: 2, workers: 2}
links: {rate: 50mbit, delay: 300us, loss: 1%, overrides: [{match: h3-s2, rate: 20mbit}]}
switch: {lanes: 32, slots: 8}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "mine.yaml").write_text(SCENARIO)
    return tmp_path / "mine.yaml"


def export(scenario: Path, to: str, *words: str) -> Path:
    out = scenario.parent / to
    assert main.main(["export", str(scenario), "--to", to, "--out", str(out), *words]) == 0
    return out


def planned(scenario: Path, program: Program) -> dict[str, Entries]:
    entries = all_entries(load(find(str(scenario))).points[0].resolved)
    return {switch: full_names(planned, program) for switch, planned in entries.items()}


@pytest.mark.parametrize("to", ["tutorial", "p4app"])
def test_runtime_files_hold_all_entries_and_are_ours_to_read_again(
    scenario: Path, to: str, capsys
) -> None:
    out = export(scenario, to)
    program = Program.read(out / "build/switchml.json")
    expected = planned(scenario, program)
    assert list(expected) == ["s1", "s2", "s3"]
    for switch, entries in expected.items():
        path = out / f"{switch}-runtime.json"
        assert user_entries.read(path, program) == entries
        content = json.loads(path.read_text())
        assert content["target"] == "bmv2"
        assert (out / content["p4info"]).is_file() and (out / content["bmv2_json"]).is_file()
    assert "not exported: losses and other impairments" in capsys.readouterr().out


def test_a_tutorial_s_topology(scenario: Path) -> None:
    content = json.loads((export(scenario, "tutorial") / "topology.json").read_text())
    assert content["hosts"]["h3"]["ip"] == "10.0.2.1/16"
    assert content["hosts"]["h3"]["mac"] == "02:00:00:00:02:01"
    commands = content["hosts"]["h3"]["commands"]
    assert commands[0] == "arp -i eth0 -s 10.0.1.1 02:00:00:00:01:01"
    assert commands[-1] == "arp -i eth0 -s 10.0.255.254 02:00:00:00:ff:fe"
    assert len(commands) == 4
    assert content["switches"]["s2"] == {"runtime_json": "s2-runtime.json"}
    assert ["h3", "s2-p1", "300us", 20.0] in content["links"]
    assert ["s1-p3", "s3-p1", "300us", 50.0] in content["links"]
    assert len(content["links"]) == 6


def test_a_p4app_starts_our_switch_and_fills_it_over_p4runtime(scenario: Path) -> None:
    out = export(scenario, "p4app")
    content = json.loads((out / "p4app.json").read_text())
    assert content["switch_node"]["object_name"] == "P4RuntimeSwitch"
    switch = content["topology"]["switches"]["s3"]
    assert switch["sw_bin"] == str(ROOT / "toolchain/p4native/switch/bin/p4native-switch")
    assert os.access(switch["sw_bin"], os.X_OK)
    assert (switch["device_id"], switch["grpc_port"]) == (3, 9561)
    link = next(link for link in content["topology"]["links"] if link[:2] == ["h3", "s2"])
    link[2].pop("max_queue_size", None)
    assert link[2] == {
        "delay": "300us",
        "bw": 20.0,
        "port1": 0,
        "addr1": "02:00:00:00:02:01",
        "params1": {"ip": "10.0.2.1/16"},
        "port2": 1,
    }
    script = (out / "fill.sh").read_text()
    assert "-m agglab.testbed fill 127.0.0.1:9561 3 s3-runtime.json" in script
    assert "ip neigh replace 10.0.255.254 lladdr 02:00:00:00:ff:fe dev h4-eth0" in script
    assert subprocess.run(["sh", "-n", out / "fill.sh"]).returncode == 0


def test_a_p4app_for_thrift_has_commands(scenario: Path) -> None:
    out = export(scenario, "p4app", "--switch", "/usr/bin/simple_switch")
    content = json.loads((out / "p4app.json").read_text())
    assert content["switch_node"]["object_name"] == "P4Switch"
    assert content["topology"]["switches"]["s1"]["cli_input"] == "s1-commands.txt"
    commands = (out / "s1-commands.txt").read_text().splitlines()
    assert commands[:3] == ["mc_mgrp_create 1", "mc_node_create 1 1 2 3", "mc_node_associate 1 0"]
    assert (
        "table_add SwitchmlIngress.forwarding.macs SwitchmlIngress.forwarding.forward "
        "0x20000000102 => 0x2" in commands
    )
    assert "-m agglab.testbed fill" not in (out / "fill.sh").read_text()


def test_what_the_tutorials_cannot_name_is_refused(tmp_path: Path, capsys) -> None:
    (tmp_path / "odd.yaml").write_text(
        "topology: {kind: custom, switches: [s1], links: [alice-s1, h2-s1]}\n"
        "switch: {lanes: 32, slots: 8}\n"
    )
    words = ["--to", "tutorial", "--out", str(tmp_path / "out")]
    assert main.main(["export", str(tmp_path / "odd.yaml"), *words]) == 2
    assert "the name of alice does not begin with 'h'" in capsys.readouterr().err


def test_one_contender_of_a_comparison_is_exported(tmp_path: Path, capsys) -> None:
    path, out = tmp_path / "two.yaml", tmp_path / "out"
    path.write_text("compare: {sum: {}, ring: {system: ring}}")
    words = ["export", str(path), "--to", "tutorial", "--out", str(out)]
    assert main.main(words) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("--contender must be one of the scenario's contenders: sum, ring")
    assert main.main([*words, "--contender", "ring"]) == 0
    assert [path.name for path in (out / "build").glob("*.json")] == ["forwarding.json"]


@pytest.mark.parametrize(
    ("words", "port"),
    [
        (["--thrift-port", "9091", "x.json"], 9091),
        (["--thrift-port=9092"], 9092),
        (["x.json", "--thrift-port"], None),
        (["x.json"], None),
    ],
)
def test_the_drop_in_finds_its_thrift_port(words: list[str], port: int | None) -> None:
    assert simple_switch.thrift_port(words) == port


def test_the_drop_in_listens_where_p4_utils_looks_and_hangs_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    seen = []
    monkeypatch.setattr(simple_switch, "main", lambda words: seen.append(words) or 7)
    assert simple_switch.run(["--thrift-port", str(port), "-i", "1@x"]) == 7
    assert seen == [["--thrift-port", str(port), "-i", "1@x"]]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        assert connection.recv(1) == b""
    others = [word.split()[1] for word in Path("/proc/net/tcp").read_text().splitlines()]
    assert f"0100007F:{port:04X}" in others and f"00000000:{port:04X}" not in others
    assert simple_switch.run(["--thrift-port", str(port)]) == 6


def test_the_switch_can_be_started_by_path(tmp_path: Path) -> None:
    link = tmp_path / "simple_switch_grpc"
    link.symlink_to(ROOT / "toolchain/p4native/switch/bin/p4native-switch")
    done = subprocess.run([link, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert "--thrift-port" in done.stdout or "-i" in done.stdout


def test_fill_says_what_is_wrong_with_its_file(tmp_path: Path, capsys) -> None:
    (tmp_path / "r.json").write_text("{}")
    assert main.main(["fill", "127.0.0.1:1", "0", str(tmp_path / "r.json")]) == 2
    assert str(tmp_path / "r.json") in capsys.readouterr().err
