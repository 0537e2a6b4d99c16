"""`agglab dissector`, and the script that a run with captures writes beside them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import needs
import numpy as np
import pytest

from agglab.hosts import wire
from agglab.testbed.cli.main import main
from agglab.testbed.results.captures.dissectors import protocol_name

from .pcap_frames import frames_of

FIELDS = ("kind", "job", "slot", "tag")
RUN = """
name: captured
backend: virtual
topology: {workers: 2}
switch: {pcap: true, lanes: 64, slots: 4}
workload: {elements: 1000, rounds: 1, dtype: int32}
"""
BELOW_BYTES = 14 + 20 + 8
"""The Ethernet, IPv4 and UDP headers."""


@pytest.fixture(scope="module")
def pcaps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "captured.yaml").write_text(RUN)
    assert main(["run", str(folder / "captured.yaml"), "--results", str(folder)]) == 0
    return folder / "captured/latest/pcap"


@needs.mark("tshark")
@pytest.mark.parametrize("way", ["in", "out"])
def test_a_runs_captures_are_readable(pcaps: Path, way: str) -> None:
    capture = pcaps / f"s1-eth1_{way}.pcap"
    names = [f"-eswitchml.aggregation.{field}" for field in FIELDS]
    command = ["tshark", "-X", f"lua_script:{pcaps / 'dissector.lua'}", "-r", str(capture)]
    done = subprocess.run(
        [*command, "-Tfields", *names], capture_output=True, text=True, check=True
    )
    rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    headers = [np.frombuffer(f, wire.HEADER, 1, BELOW_BYTES)[0] for f in frames_of(capture)]
    right = [tuple(int(header[field]) for field in FIELDS) for header in headers]
    assert rows == right and len(rows) > 16
    assert {row[0] >> 7 for row in rows} == {int(way == "out")}


def test_several_programs_have_several_names(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--set", "sweep={switch.lanes: [64, 128]}", "--set", "expect={}"]
    assert main(["dissector", "quickstart", *settings]) == 0
    script = capsys.readouterr().out
    assert script.count('local PROGRAM = "switchml"\n') == 1
    assert script.count('local PROGRAM = "switchml_2"\n') == 1


@pytest.mark.parametrize(
    ("stem", "name"),
    [("My-Prog", "my_prog"), ("9lives", "p4_9lives"), ("a.b", "a_b"), ("é", "p4__")],
)
def test_a_protocol_has_a_name_that_wireshark_allows(stem: str, name: str) -> None:
    assert protocol_name(stem) == name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.json"], "none.json: cannot be read: No such file or directory"),
        (["no-such-scenario"], "unknown scenario"),
        (["quickstart", "-o", "none/x.lua"], "cannot write none/x.lua: No such file"),
    ],
)
def test_a_wrong_word_is_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dissector", *words]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
