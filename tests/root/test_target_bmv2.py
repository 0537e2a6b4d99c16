"""`target: bmv2` as a user meets it, where BMv2 is not: our switch is its drop-in, and stand-ins
that fail as it can fail."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest
from waiting import until

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[2]
SMALL = """
name: small
topology: {workers: 2}
links: {rate: 100mbit}
switch: {target: bmv2, lanes: 64, slots: 64}
workload: {elements: 20_001, dtype: int32, rounds: 2}
expect: {exact: true, totals.other_drops: 0}
"""
DROP_IN = f'exec {sys.executable} -m p4native.switch "$@"'
HELP = '[ "$1" = --help ] && exit 0\n'


@pytest.fixture
def stand_in(tmp_path: Path):
    """Put a shell script on PATH as simple_switch_grpc; returns the environment."""

    def install(script: str) -> dict[str, str]:
        program = tmp_path / "bin" / "simple_switch_grpc"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return {"PATH": f"{program.parent}:{os.environ['PATH']}"}

    return install


@pytest.mark.long
def test_over_p4runtime_with_our_switch_as_its_drop_in(scenario, stand_in) -> None:
    """The same command line: flags, ports, captures, log."""
    environment = stand_in(DROP_IN)
    file = scenario.write(SMALL)
    ended = scenario.run(
        file, "--set", "switch.pcap=true", "--set", "switch.log=info", **environment
    )
    assert (ended.code, ended.err) == (0, "")
    assert ended.metrics["exact"] is True
    folder = Path(environment["PATH"].partition(":")[0])
    manifest = ended.json("manifest.json")["targets"]["bmv2"]
    assert manifest["program"] == str(folder / "simple_switch_grpc")
    assert manifest["queues"]["egress_packets_per_port"] == 64
    captures = {path.name for path in (ended.folder / "pcap").iterdir()}
    assert {"s1-eth1_in.pcap", "s1-eth2_out.pcap"} <= captures
    assert "[INFO]" in (ended.folder / "logs" / "switch-s1.log").read_text()


@pytest.mark.long
def test_the_window_stays_below_its_queues(scenario, stand_in) -> None:
    """48 of the 64 packets that wait at a port; 100 Mbit/s alone would allow 113."""
    ended = scenario.run(
        scenario.write(SMALL.replace("lanes: 64, slots: 64", "slots: 128")), **stand_in(DROP_IN)
    )
    assert ended.code == 0, ended.err
    assert ended.json("logs/agent-h1.json")["settings"]["window"] == 48


@pytest.mark.long(but=["script1-says1"])
@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            f"{HELP}echo 'Could not bind to port 9090'; exit 1",
            [
                "the switch ended with exit code 1 while starting",
                "command: simple_switch_grpc -i 1@s1-eth1",
                "    Could not bind to port 9090",
                "likely cause: another program uses the switch's Thrift port",
            ],
        ),
        (
            f"{HELP}echo \"terminate called after throwing 'Json::RuntimeError'\"; kill -ABRT $$",
            [
                "was killed by SIGABRT while starting",
                "likely cause: the compiled program is not JSON",
            ],
        ),
        (
            f"{HELP}kill -9 $$",
            ["was killed by SIGKILL while starting", "likely cause: somebody killed it"],
        ),
    ],
)
def test_a_switch_that_cannot_start_says_why_and_leaves_nothing(
    scenario, stand_in, script: str, says: list[str]
) -> None:
    ended = scenario.run(scenario.write(SMALL), **stand_in(script))
    assert ended.code == 1
    for words in says:
        assert words in ended.err
    assert scenario.processes() == {}


@pytest.mark.long
def test_our_switch_killed_at_its_start_leaves_nothing(scenario) -> None:
    process = scenario.start(scenario.write(SMALL.replace("target: bmv2, ", "")))
    until(lambda: _switches(scenario) != [], "the switch is started")
    for pid in _switches(scenario):
        os.kill(pid, signal.SIGKILL)
    said = process.communicate()[1]
    assert process.returncode == 1
    assert "s1: the switch was killed by SIGKILL" in said
    assert "likely cause: somebody killed it, or the kernel did because memory ran out" in said
    scratch = re.search(r"unix:(\S+)/s1.grpc", said)
    assert scratch
    assert not Path(scratch[1]).exists()
    assert scenario.processes() == {}


def _switches(scenario) -> list[int]:
    return [
        pid for pid, command in scenario.processes().items() if " -m p4native.switch " in command
    ]


def test_a_missing_switch_is_said_before_anything_starts(scenario, tmp_path: Path) -> None:
    """Nothing of BMv2's on PATH: a folder of links to all else that is there."""
    folder = tmp_path / "without"
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            link.unlink(missing_ok=True)
            if not program.name.startswith("simple_switch"):
                link.symlink_to(program)
    ended = scenario.run_with_programs(folder, scenario.write(SMALL))
    assert ended.code == 3
    assert ended.err.startswith("this machine lacks BMv2 (simple_switch_grpc or simple_switch)")
    assert ended.folder is None
