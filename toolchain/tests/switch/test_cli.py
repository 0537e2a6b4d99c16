"""The command line: what simple_switch_grpc's scripts say is understood, what is wrong is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from p4native.switch import Program, simple_switch
from p4native.switch.cli import main
from p4native.switch.io import Loss
from p4native.switch.options import (
    EXIT_PROGRAM,
    EXIT_USAGE,
    TlsFiles,
    UsageError,
    _general_parser,
    _target_parser,
    parse,
)
from p4native.switch.runner import make_pipeline

TLS = "--grpc-server-ssl --grpc-server-cert c --grpc-server-key k"
ROOT = Path(__file__).resolve().parents[2]


def test_the_grammar_of_simple_switch_grpc(tmp_path: Path) -> None:
    line = (
        f"-i 1@s1-eth1 --interface 2@s1-eth2 --pcap {tmp_path} --device-id 4 --thrift-port 9090 "
        "--log-console -L debug prog.json -- --grpc-server-addr 0.0.0.0:50051 --cpu-port 255 "
        "--drop-port 300 --priority-queues 8 --disable-swap"
    )
    options = parse(line.split())
    assert options.interfaces == {1: "s1-eth1", 2: "s1-eth2"}
    assert options.json == Path("prog.json")
    assert options.pcap_folder == tmp_path
    assert (options.device_id, options.log_console, options.log_level) == (4, True, "debug")
    assert (options.grpc_address, options.cpu_port) == ("0.0.0.0:50051", 255)
    assert (options.drop_port, options.priority_queues) == (300, 8)
    ignored = [note.split()[0] for note in options.notes]
    assert ignored == ["--thrift-port", "--disable-swap"]


def test_defaults() -> None:
    options = parse(["prog.json", "-i", "0@eth0", "--pcap"])
    assert options.interfaces == {0: "eth0"}
    assert (options.grpc_address, options.tls, options.user) == (None, None, None)
    assert (options.cpu_port, options.device_id, options.notes) == (None, 0, ())
    assert options.pcap_folder == Path()


def test_no_p4_ignores_a_program() -> None:
    assert parse(["--no-p4", "prog.json", "--p4info", "x"]).json is None


def test_the_flags_of_tls() -> None:
    assert parse(["p.json", "--", *TLS.split()]).tls == TlsFiles(Path("c"), Path("k"), None)
    both = f"{TLS} --grpc-server-cacert=a --grpc-server-with-client-auth"
    assert parse(["p.json", "--", *both.split()]).tls == TlsFiles(Path("c"), Path("k"), Path("a"))


WRONG = [
    ("", "no program"),
    ("-i eth0 p.json", "PORT@INTERFACE"),
    ("-i 1@ p.json", "PORT@INTERFACE"),
    ("-i 512@eth0 p.json", "0 to 511"),
    ("-i 511@eth0 p.json", "drop port"),
    ("-i -1@eth0 p.json", "expected one argument"),
    ("-i 1@eth0 --drop 2:in:ff:ff p.json", "port 2 has no interface"),
    ("-i 1@eth0 --drop 1:in:1:1 --drop 1:in:2:2 p.json", "two of the same direction"),
    ("-i 1@eth0 --drop 1:up:1:1 p.json", "PORT:in|out:KEY:THRESHOLD"),
    ("-i 1@eth0 --drop 1:in:1:10000000000000001 p.json", "at most 2^64 - 1 and 2^64"),
    ("-i 1@eth0 --drop 1:in:10000000000000000:1 p.json", "at most 2^64 - 1 and 2^64"),
    ("-i 1@eth0 --drop 1:in:-1:1 p.json", "both hexadecimal"),
    ("-i 1@eth0 -i 1@eth1 p.json", "port 1 is given twice"),
    ("-i 1@eth0 -i 2@eth0 p.json", "eth0 is given twice"),
    ("--device-id x p.json", "'x'"),
    ("--pcap=/nonexistent p.json", "/nonexistent"),
    ("-L loud p.json", "loud"),
    ("--log-console --log-file x p.json", "not allowed with"),
    ("p.json extra.json", "extra.json"),
    ("--use-files 0 p.json", "--use-files"),
    ("p.json -- --cpu-port 600", "'600'"),
    ("-i 5@eth0 p.json -- --cpu-port 5", "port 5"),
    ("-i 100@eth0 p.json -- --drop-port 100", "port 100 is the drop port"),
    ("p.json -- --priority-queues 9", "1 to 8"),
    ("p.json -- --grpc-server-addr 127.0.0.1:99999", "'99999' is not a port from 0 to 65535"),
    ("p.json -- --grpc-server-addr 127.0.0.1:-1", "'-1' is not a port from 0 to 65535"),
    ("p.json -- --grpc-server-addr 127.0.0.1:http", "'http' is not a port from 0 to 65535"),
    ("p.json -- --grpc-server-addr 127.0.0.1", "lacks a port"),
    ("p.json -- --grpc-server-addr 127.0.0.1:", "lacks a port"),
    ("p.json -- --grpc-server-addr ::1", "lacks a port"),
    ("p.json -- --grpc-server-addr [::1]", "lacks a port"),
    ("p.json -- --grpc-server-addr dns:///localhost", "lacks a port"),
    ("p.json -- --grpc-server-addr ipv4:127.0.0.1:1,127.0.0.1:70000", "'70000' is not a port"),
    ("p.json -- --grpc-server-addr=", "lacks a port"),
    ("--ring-frames 0 p.json", "1 to 65536"),
    ("p.json -- --load-modules x.so", "--load-modules"),
    ("p.json -- --grpc-server-cert c", "need --grpc-server-ssl"),
    ("p.json -- --grpc-server-with-client-auth", "need --grpc-server-ssl"),
    ("p.json -- --grpc-server-ssl --grpc-server-cert c", "needs --grpc-server-cert and"),
    (f"p.json -- {TLS} --grpc-server-cacert a", "must be given together"),
    (f"p.json -- {TLS} --grpc-server-with-client-auth", "must be given together"),
]


NUMBERS = {
    "--device-id": 2**64 - 1,
    "--seed": 2**64 - 1,
    "--ready-fd": 2**31 - 1,
    "--coalesce-us": 999_999,
    "--ring-frames": 65536,
    "--thrift-port": 65535,
    "--log-file-max-size": 2**64 - 1,
    "--log-file-max-files": 2**64 - 1,
    "--dump-packet-data": 2**64 - 1,
    "--max-port-count": 2**64 - 1,
}
TARGET_NUMBERS = {
    "--cpu-port": 511,
    "--drop-port": 511,
    "--priority-queues": 8,
    "--max-mc-groups": 2**64 - 1,
    "--max-l1-entries": 2**64 - 1,
    "--max-l2-entries": 2**64 - 1,
}


@pytest.mark.parametrize("option", [*NUMBERS, *TARGET_NUMBERS])
def test_each_number_has_limits(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["p.json", "--"] if option in TARGET_NUMBERS else ["p.json"]
    most = {**NUMBERS, **TARGET_NUMBERS}[option]
    parse([*words, f"{option}={most}"])
    for text in (str(most + 1), "-1", "", "x", "1.5", "\N{ARABIC-INDIC DIGIT ONE}", "9" * 5000):
        assert main([*words, f"{option}={text}"]) == EXIT_USAGE
        error = capsys.readouterr().err
        assert error.startswith(f"switch: argument {option}: {text!r} is not a")
        assert f" to {most}\n" in error and error.count("\n") == 1


def test_every_number_of_the_command_line_is_tested() -> None:
    actions = [*_general_parser()._actions, *_target_parser()._actions]
    numeric = {a.option_strings[-1] for a in actions if a.type not in (None, str, Path)}
    others = {"--interface", "--drop", "--grpc-server-addr"}
    assert numeric == {*NUMBERS, *TARGET_NUMBERS, *others}


@pytest.mark.parametrize("port", ["99999", "-1", "", "x", "0"])
def test_what_is_no_thrift_port_is_a_wrong_command_line(
    port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simple_switch.run(["p.json", f"--thrift-port={port}"]) == EXIT_USAGE
    assert f"--thrift-port: {port!r} is not a TCP port" in capsys.readouterr().err


@pytest.mark.parametrize(("line", "what"), WRONG)
def test_what_is_wrong_is_named_in_one_line(
    line: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError):
        parse(line.split())
    assert main(line.split()) == EXIT_USAGE
    error = capsys.readouterr().err
    assert what in error and error.count("\n") == 1


def test_the_drop_port_reaches_the_program() -> None:
    """No entry of entities.p4 matches, so its default action sends everything to port 255."""
    program = Program.read(Path(__file__).parent / "p4runtime/entities.json")
    for words, copies in (("", 1), ("--drop-port 255", 0)):
        options = parse(["entities.json", "--", *words.split()])
        with make_pipeline(options, program) as pipeline:
            assert len(pipeline.process(1, bytes(60))) == copies


@pytest.mark.parametrize(
    ("option", "answer"),
    [("--help", "PORT@INTERFACE"), ("-v", "p4native-switch "), ("--json-version", "2.")],
)
def test_questions_are_answered(option: str, answer: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "p4native.switch", option], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0 and answer in done.stdout


def test_losses_are_read() -> None:
    options = parse(
        [
            "-i",
            "1@a",
            "-i",
            "2@b",
            "--drop",
            "1:in:00fF:10000000000000000",
            "--drop",
            "2:out:1:0",
            "p.json",
        ]
    )
    assert options.losses == (Loss(1, False, 255, 1 << 64), Loss(2, True, 1, 0))


def test_a_program_that_is_none_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    path.write_text("root:x:0:0")
    # As a program of its own: it becomes another user.
    command = [sys.executable, "-m", "p4native.switch", str(path), "--", "--grpc-server-addr"]
    done = subprocess.run(
        [*command, f"unix:{tmp_path}/grpc"], cwd=ROOT, capture_output=True, text=True
    )
    said = f"switch: {path}: is not JSON: Expecting value: line 1 column 1 (char 0)\n"
    assert (done.returncode, done.stderr) == (EXIT_PROGRAM, said)
    assert list(tmp_path.iterdir()) == [path]
