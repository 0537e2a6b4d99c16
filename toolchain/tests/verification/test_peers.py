"""Peers that are on PATH and do not run: named, with what they said, and never a difference."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from p4native.bmv2.errors import CouldNotRun
from p4native.bmv2.thrift_cli import PROGRAM as CLI
from p4native.verification import __main__ as verification
from p4native.verification import conformance, peers
from p4native.verification.conformance import packets, random_case, randomised
from p4native.verification.conformance.packets import Case
from p4native.verification.conformance.pairs import Pair
from p4native.verification.corpus import TESTS

DROP = str(TESTS / "drop.p4")
OURS, FIELDS = Pair("p4native", "native"), Pair("p4native", "bmv2")
LISTENS = """
import socket, sys, time
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(sys.argv[sys.argv.index("--thrift-port") + 1])))
server.listen()
time.sleep(60)
"""
NO_MODULE = "raise ModuleNotFoundError(\"No module named 'thrift'\")"
NO_LIBRARY = "sys.exit('libbm.so.0: cannot open shared object file')"
NO_INCLUDES = "sys.exit('small.p4:1: fatal error: core.p4: No such file or directory')"
KILLED = "os.kill(os.getpid(), 9)"
COMPILES = "print('1.2.3'); open(sys.argv[-1], 'w').close() if '-o' in sys.argv else None"
Install = Callable[[str, str], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Install:
    """Puts a program of Python text on PATH, before all others and in the place of the peers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    kept = [p for p in os.environ["PATH"].split(":") if not (Path(p) / peers.SWITCH).exists()]
    kept = [p for p in kept if not (Path(p) / peers.P4C).exists()]
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), *kept]))

    def put(name: str, text: str) -> None:
        (folder / name).write_text(f"#!{sys.executable}\nimport os, sys\n{text}\n")
        (folder / name).chmod(0o755)

    return put


@pytest.mark.long
def test_each_peer_says_why_it_could_not_run(install: Install, tmp_path: Path) -> None:
    assert (peers.p4c_trouble(), peers.bmv2_trouble()) == ("", ""), "nothing is there"
    install(peers.P4C, NO_INCLUDES)
    said = peers.p4c_trouble()
    assert (
        said == "p4c-bm2-ss could not be run: small.p4:1: fatal error: core.p4: No such file or "
        "directory"
    )
    install(peers.P4C, COMPILES)
    assert peers.p4c_trouble() == ""
    install(peers.SWITCH, NO_LIBRARY)
    assert "simple_switch could not be run: libbm.so.0" in peers.bmv2_trouble()
    install(CLI, NO_MODULE)
    assert "simple_switch could not be run: libbm.so.0" in peers.bmv2_trouble()
    install(peers.SWITCH, KILLED)
    assert peers.bmv2_trouble() == "simple_switch could not be run: it printed nothing"
    install(peers.SWITCH, LISTENS)
    assert "simple_switch_CLI could not be run: " in (said := peers.bmv2_trouble())
    assert said.endswith("No module named 'thrift'")
    install(CLI, "while True: print('RuntimeCmd: ', end='', flush=True); sys.stdin.readline()")
    assert peers.bmv2_trouble() == ""
    (tmp_path / "bin" / peers.SWITCH).write_text("no program")
    assert peers.bmv2_trouble() == "simple_switch could not be run: Exec format error"


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "pairs"),
    [
        ([DROP], "p4native + native"),
        (["--random", "1", "--workers", "1"], "p4native + native, front end + interpreter"),
    ],
)
def test_conformance_with_peers_that_do_not_run_is_no_difference(
    install: Install,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: list[str],
    pairs: str,
) -> None:
    install(peers.P4C, NO_INCLUDES)
    install(peers.SWITCH, LISTENS)
    install(CLI, NO_MODULE)
    assert conformance.main([*words, "--results", str(tmp_path / "results")]) == 3
    said = capsys.readouterr().out
    assert f"pairs: {pairs}\n" in said
    assert (
        "could not run: p4c (p4c-bm2-ss could not be run: small.p4:1: fatal error: core.p4" in said
    )
    assert "could not run: bmv2 (simple_switch_CLI could not be run: " in said
    assert "differ" not in said and "other sums" not in said


@pytest.mark.long
def test_random_programs_need_no_peers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Packet tests have nobody to agree with then, which is exit code 3."""
    absent = dict.fromkeys(("p4c", "bmv2"), "nothing")
    monkeypatch.setattr("p4native.verification.conformance.pairs.absent", lambda: absent)
    results = ["--results", str(tmp_path / "results")]
    assert conformance.main(["--random", "1", "--workers", "1", *results]) == 0
    assert "24 packets, 2 pairs: all agree" in capsys.readouterr().out
    assert conformance.main([DROP, *results]) == 3


@pytest.fixture
def dies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A BMv2 that starts and is killed by its first packet."""

    class Dying:
        def __init__(self, *_: object) -> None: ...

        def __enter__(self) -> Dying:
            return self

        def __exit__(self, *_: object) -> None: ...

        def send(self, *_: object) -> None:
            raise CouldNotRun(peers.SWITCH, f"it was killed by {signal.Signals.SIGSEGV.name}")

    for module in (packets, random_case):
        monkeypatch.setattr(module, "Bmv2", Dying)


def test_a_switch_that_dies_on_the_way_is_no_difference(dies: None, tmp_path: Path) -> None:
    program = TESTS / "drop.p4"
    found = packets.run_case(Case(program, program.with_suffix(".stf")), [FIELDS, OURS])
    assert found.differs == []
    (text,) = found.not_run
    assert text.endswith(
        "drop.p4 on p4native + bmv2: simple_switch could not be run: it was killed by SIGSEGV"
    )
    verdict = randomised.judge_seed(1, [FIELDS, OURS], tmp_path, 1.0)
    assert verdict.kind == "not run" and "SIGSEGV" in verdict.lines[0]


@pytest.mark.long
def test_the_command_line_names_it(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(peers.P4C, KILLED)
    assert verification.main(["conformance", DROP]) == 3
    assert "p4c (p4c-bm2-ss could not be run: it printed nothing)" in capsys.readouterr().out
