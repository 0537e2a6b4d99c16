"""What conformance calls a difference, and how it ends; peers are not needed."""

from __future__ import annotations

import io
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.paths import REPOSITORY
from agglab.testbed.run import run
from agglab.testbed.scenario import find, load
from agglab.verification import __main__ as verification
from agglab.verification import conformance
from agglab.verification.conformance import command, packets, pairs, scenarios
from agglab.verification.conformance.packets import Case, Outcome
from agglab.verification.conformance.pairs import Pair
from agglab.verification.conformance.scenarios import ScenarioResult
from p4native.bmv2.engine import TOOLS
from p4native.stf import Binder, parse

OURS, FIELDS = Pair("agglab", "native"), Pair("p4c", "bmv2")
PROGRAM = {
    "header_types": [{"name": "e_t", "fields": [["dst", 16, False], ["kind", 8, False]]}],
    "headers": [{"name": "e", "header_type": "e_t"}],
    "parsers": [
        {
            "init_state": "start",
            "parse_states": [
                {
                    "name": "start",
                    "parser_ops": [
                        {"op": "extract", "parameters": [{"type": "regular", "value": "e"}]}
                    ],
                    "transition_key": [],
                    "transitions": [{"value": "default", "mask": None, "next_state": None}],
                }
            ],
        }
    ],
    "actions": [],
    "pipelines": [],
}


def differences(script: str, right: list[str], got: list[str]) -> list[str]:
    frames = [{1: [bytes.fromhex(f) for f in side]} for side in (right, got)]
    outcomes = [Outcome([], by_port) for by_port in frames]
    return list(packets.differences(Binder(PROGRAM), parse(script), *outcomes))


def test_the_same_packets_are_no_difference() -> None:
    assert differences("expect 1 0a", ["0a0b0c", "0d"], ["0a0b0c", "0d"]) == []


def test_a_difference_has_packet_bytes_and_field() -> None:
    """Beyond what the script says: it expects the first byte alone."""
    (text,) = differences("expect 1 0a\nexpect 1 0a", ["0a0b0c", "0a0b01"], ["0a0b0c", "0a0b02"])
    assert text.startswith("port 1, packet 2 of 2 differs\n")
    assert "e.kind: expected 0x01, got 0x02" in text
    assert "^^" in text


def test_nibbles_the_script_leaves_open_may_differ() -> None:
    assert differences("expect 1 0a **", ["0a0b"], ["0a0c"]) == []
    assert differences("expect 1 0a *b", ["0a0b"], ["0a0c"])
    assert differences("expect 1", ["0a0b"], ["0a0c", "00"]) == []


def test_a_packet_more_is_a_difference() -> None:
    assert differences("expect 1 0a", ["0a"], ["0a", "0a"]) == ["port 1: 2 packets came out, not 1"]


def test_a_case_that_holds_and_one_that_does_not(tmp_path: Path) -> None:
    program = REPOSITORY / "tests" / "packets" / "arithmetic_wrap.p4"
    script = tmp_path / "t.stf"
    script.write_text("packet 0 c8 64 00 00 00 00\nexpect 1 c8 64 2c 64 20 38 $\n")
    assert packets.run_case(Case(program, script), [OURS]).differs == []
    script.write_text("packet 0 c8 64 00 00 00 00\nexpect 1 c8 64 2d $\n")
    (text,) = packets.run_case(Case(program, script), [OURS]).differs
    assert text.startswith(
        "toolchain/tests/packets/arithmetic_wrap.p4 on agglab + native: 2: port 1, packet"
    )


def test_every_program_is_a_case() -> None:
    found = {case.program.stem: case.script for case in packets.cases()}
    assert found["switchml"] is None
    assert found["multicast"] == REPOSITORY / "tests" / "packets" / "multicast.stf"
    assert len(found) > 90


def test_sums_are_compared_round_by_round() -> None:
    right = ScenarioResult({("job1", 0): "aa", ("job1", 1): "bb"}, True, 0.5)
    assert scenarios.compare({FIELDS: right, OURS: right}) == []
    other = ScenarioResult({("job1", 0): "aa", ("job1", 1): "cc"}, True, 0.1)
    assert scenarios.compare({FIELDS: right, OURS: other}) == [
        "on agglab + native: job1, round 1: other sums than on p4c + bmv2"
    ]
    missing = ScenarioResult({("job1", 0): "aa"}, False, None)
    assert scenarios.compare({FIELDS: right, OURS: missing}) == [
        "on agglab + native: not every sum or result is right",
        "on agglab + native: job1, round 1: other sums than on p4c + bmv2",
    ]


def test_a_run_without_sums_is_no_agreement() -> None:
    assert scenarios.compare({FIELDS: ScenarioResult({}, False, None)})


def test_sums_that_depend_on_time_only_have_to_be_right() -> None:
    right, wrong = ScenarioResult(None, True, 0.5), ScenarioResult(None, False, 0.5)
    assert scenarios.compare({FIELDS: right, OURS: right}) == []
    assert scenarios.compare({FIELDS: right, OURS: wrong}) == [
        "on agglab + native: not every sum or result is right"
    ]


def test_which_sums_depend_on_time() -> None:
    assert scenarios._timed(load(find("mlfabric-small"))) == [""]
    assert scenarios._timed(load(find("locks"))) == [""]
    assert scenarios._timed(load(find("partial-small"))) == [""]
    for name in ("libra-small", "systems-small", "word-count", "quickstart"):
        assert scenarios._timed(load(find(name))) == []


def test_a_run_that_broke_off_says_why() -> None:
    right = ScenarioResult({}, True, 0.5)
    broken = ScenarioResult({}, False, None, "exit code 2: it does not compile")
    said = scenarios.compare({FIELDS: right, OURS: broken})
    assert said == ["on agglab + native: exit code 2: it does not compile"]


@pytest.mark.long
def test_the_marked_scenarios() -> None:
    assert {"quickstart", "loss", "two-racks"} <= set(scenarios.marked())


SEVERAL = """
name: several
backend: virtual
topology: {kind: rack, workers: 2}
links: {rate: 50mbit}
switch: {lanes: 64}
workload: {elements: 1000, rounds: 2}
compare: {switchml: {}, ring: {system: ring}}
sweep: {workload.dtype: [int32, float32]}
"""


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Runs the scenario in virtual time, in this process; commands that it was asked to run."""
    path, asked = tmp_path / "several.yaml", []
    path.write_text(SEVERAL)
    monkeypatch.setattr(scenarios, "find", lambda name: path)

    whatever = subprocess.run

    def run_here(command: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        if "agglab.testbed" not in command:
            return whatever(command, **how)
        asked.append(" ".join(command))
        folder = Path(command[command.index("--results") + 1])
        code = run(load(path), folder, [], io.StringIO())
        return subprocess.CompletedProcess(command, code, "", "")

    monkeypatch.setattr(scenarios.subprocess, "run", run_here)
    return asked


def test_each_run_of_a_sweep_and_a_comparison_is_compared(
    several: list[str], tmp_path: Path
) -> None:
    ran = {pair: scenarios.run_on("several", pair, tmp_path / str(pair)) for pair in (FIELDS, OURS)}
    assert all("--set backend=mininet --set switch.target=" in command for command in several)
    each = scenarios.by_run(ran)
    assert [run.rpartition(" ")[2] for run in each] == ["switchml", "ring"] * 2
    for pairs_ in each.values():
        assert scenarios.compare(pairs_) == []
        assert all(len(one.sums) == 2 and one.time_s for one in pairs_.values())
    last = list(each)[-1]
    other = replace(ran[OURS][last], sums={**ran[OURS][last].sums, ("job1", 1): "cc"})
    each = scenarios.by_run({FIELDS: ran[FIELDS], OURS: {**ran[OURS], last: other}})
    assert [bool(scenarios.compare(each[run])) for run in each] == [False, False, False, True]


def test_a_comparison_that_cannot_run_is_trouble_in_each_of_its_runs(
    several: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = subprocess.CompletedProcess([], 2, "", "it does not compile")
    monkeypatch.setattr(scenarios.subprocess, "run", lambda *_, **__: said)
    ran = scenarios.run_on("several", OURS, tmp_path)
    assert [one.trouble for one in ran.values()] == ["exit code 2: it does not compile"] * 4


@pytest.fixture
def no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    peers = (pairs.P4C, *TOOLS)
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool in peers else which(tool))


@pytest.mark.long
def test_absent_peers_are_named(no_peers: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["--packets", "drop"]) == 3, "nothing to agree with"
    said = capsys.readouterr().out
    assert "pairs: agglab + native\n" in said
    assert "absent: p4c (not on PATH: p4c-bm2-ss)" in said
    assert "absent: bmv2 (not on PATH: simple_switch, simple_switch_CLI)" in said
    assert "packets: 1 programs, 1 packet tests, 1 pairs: all agree" in said


@pytest.mark.long
def test_a_name_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["quikstart"]) == 2
    assert "'quikstart': no program with a packet test and no scenario" in capsys.readouterr().err


def test_without_the_packet_tests_it_is_lacking(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(packets, "TESTS", tmp_path / "toolchain/tests/packets")
    assert verification.main(["conformance"]) == 3
    assert capsys.readouterr().err.endswith("toolchain/tests/packets: run it in a checkout\n")


@pytest.mark.long
def test_endings(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(pairs, "present", lambda without: [FIELDS, OURS])
    monkeypatch.setattr(pairs, "absent", dict)
    monkeypatch.setattr(pairs, "broken", dict)
    results = {
        FIELDS: ScenarioResult({("job1", 0): "aa"}, True, 0.5),
        OURS: ScenarioResult({("job1", 0): "aa"}, True, 1),
    }
    monkeypatch.setattr(scenarios, "run_on", lambda name, pair, results_: {"": results[pair]})
    monkeypatch.setattr(command, "_packets", lambda here, only: 0)
    assert conformance.main(["quickstart"]) == 0
    said = capsys.readouterr().out
    assert "quickstart: the same sums; a round: p4c + bmv2 0.500 s (1.00), agglab" in said
    results[OURS] = ScenarioResult({("job1", 0): "ab"}, True, 1)
    assert conformance.main(["--scenarios", "quickstart"]) == 1

    monkeypatch.setattr(scenarios, "run_on", lambda *_: {"a, ring": results[OURS]})
    assert conformance.main(["--scenarios", "quickstart"]) == 0
    assert "quickstart (a, ring): the same sums; a round" in capsys.readouterr().out

    def lacks(*_: object) -> ScenarioResult:
        raise scenarios.NotRun("this machine lacks root")

    monkeypatch.setattr(scenarios, "run_on", lacks)
    assert conformance.main(["quickstart"]) == 3
    assert "quickstart: not run: this machine lacks root" in capsys.readouterr().out
