"""What conformance calls a difference, and how it ends; peers are not needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from p4native.bmv2.engine import TOOLS
from p4native.stf import Binder, parse
from p4native.verification import __main__ as verification
from p4native.verification import conformance, peers
from p4native.verification.conformance import command, packets
from p4native.verification.conformance.packets import Case, Outcome
from p4native.verification.conformance.pairs import Pair
from p4native.verification.corpus import TESTS, Corpus

OURS, FIELDS = Pair("p4native", "native"), Pair("p4c", "bmv2")
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
    program = TESTS / "arithmetic_wrap.p4"
    script = tmp_path / "t.stf"
    script.write_text("packet 0 c8 64 00 00 00 00\nexpect 1 c8 64 2c 64 20 38 $\n")
    assert packets.run_case(Case(program, script), [OURS]).differs == []
    script.write_text("packet 0 c8 64 00 00 00 00\nexpect 1 c8 64 2d $\n")
    (text,) = packets.run_case(Case(program, script), [OURS]).differs
    assert text.startswith(f"{Case(program, script).name} on p4native + native: 2: port 1, packet")


def test_a_case_is_called_by_its_path_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path / "mine" / "a.p4", None)
    assert case.name == str(tmp_path / "mine" / "a.p4")
    monkeypatch.chdir(tmp_path)
    assert case.name == "mine/a.p4"


def test_every_program_is_a_case() -> None:
    scripts = {case.program.stem: case.script for case in packets.cases(Corpus().programs())}
    assert scripts["multicast"] == TESTS / "multicast.stf"
    assert len(scripts) > 90
    assert None not in scripts.values()


@pytest.fixture
def no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = (peers.P4C, *TOOLS)
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool in absent else which(tool))


def test_absent_peers_are_named(no_peers: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main([str(TESTS / "drop.p4")]) == 3, "nothing to agree with"
    said = capsys.readouterr().out
    assert "pairs: p4native + native\n" in said
    assert "absent: p4c (not on PATH: p4c-bm2-ss)" in said
    assert "absent: bmv2 (not on PATH: simple_switch, simple_switch_CLI)" in said
    assert "packets: 1 programs, 1 packet tests, 1 pairs: all agree" in said


def test_a_file_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verification.main(["conformance", str(tmp_path / "none.p4")]) == 2
    assert capsys.readouterr().err == f"conformance: {tmp_path}/none.p4: no such file\n"


def test_a_packet_test_that_cannot_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "drop.p4"
    program.write_text("")
    script = program.with_suffix(".stf")
    script.write_text("packet 0 00\nexpekt 1 00\n")
    assert verification.main(["conformance", str(program)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"conformance: {script}:2: error: ") and said.count("\n") == 1


def test_without_packet_tests_programs_have_to_be_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("p4native.verification.corpus.TESTS", tmp_path)
    monkeypatch.setattr(command, "TESTS", tmp_path)
    for name in ("conformance", "fuzz"):
        assert verification.main([name]) == 3
    conformance_said, fuzz_said = capsys.readouterr().err.splitlines()
    assert conformance_said == (
        f"conformance: no packet tests in {tmp_path}: run it in a checkout, or name programs"
    )
    assert fuzz_said.endswith("run it in a checkout, or name folders with --programs")


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert verification.main(["conform"]) == 2
    assert "conformance  compare" in capsys.readouterr().err
    assert verification.main(["--help"]) == 0
    assert "conformance  compare" in capsys.readouterr().out
