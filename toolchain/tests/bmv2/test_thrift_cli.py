"""simple_switch_CLI's answers read and checked; a stand-in prints what the real one does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from p4native.bmv2 import thrift_cli
from p4native.bmv2.errors import ControlError
from p4native.bmv2.thrift_cli import ThriftCli

STAND_IN = f"""#!{sys.executable}
import sys
print("Obtaining JSON from switch...\\nDone\\nControl utility for runtime P4 table management")
while True:
    try:
        line = input("RuntimeCmd: ")
    except EOFError:
        break
    if line.startswith("table_add"):
        print("Adding entry to exact match table", line.split()[1])
        print("Entry has been added with handle", 7)
    elif line == "die":
        print("TTransportException: Could not connect")
        sys.exit(1)
    elif line.startswith("table_delete"):
        print("Deleting entry 9 from t\\nInvalid table operation (INVALID_HANDLE)")
    elif line == "port":
        print(sys.argv[1:])
    else:
        print("*** Unknown syntax:", line)
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / thrift_cli.PROGRAM
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return program


def test_answers_and_refusals(stand_in: Path) -> None:
    with ThriftCli(9091) as cli:
        assert thrift_cli.handle(cli.command("table_add t a 1 => 2")) == 7
        with pytest.raises(ControlError, match=r"`table_delete t 9`: .*INVALID_HANDLE"):
            cli.command("table_delete t 9")
        with pytest.raises(ControlError, match=r"`frobnicate`: \*\*\* Unknown syntax"):
            cli.command("frobnicate")
        assert cli.command("port").strip() == "['--thrift-port', '9091']"


def test_a_cli_that_ends_is_an_error_with_its_last_words(stand_in: Path) -> None:
    with ThriftCli(9090) as cli:
        with pytest.raises(ControlError, match="ended with the message: TTransportException"):
            cli.command("die")
        with pytest.raises(ControlError):
            cli.command("port")


def test_a_cli_that_cannot_connect_is_an_error(stand_in: Path) -> None:
    stand_in.write_text(f"#!{sys.executable}\nprint('Could not connect to thrift client')\n")
    with pytest.raises(ControlError, match="Could not connect to thrift client"):
        ThriftCli(9090)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("pipe.c[3]= (1500 bytes, 12 packets)\n", (12, 1500)),
        ("pipe.c[3]=  BmCounterValue(packets=12, bytes=1500)\n", (12, 1500)),
    ],
)
def test_counters_of_both_spellings(answer: str, value: tuple[int, int]) -> None:
    assert thrift_cli.counter(answer) == value


def test_registers() -> None:
    assert thrift_cli.register("pipe.r[12]= 4294967295\n") == 0xFFFFFFFF
    with pytest.raises(ControlError, match="an answer of an unknown form"):
        thrift_cli.register("pipe.r= 1, 2\n")


@pytest.mark.parametrize(
    "answer",
    [
        "Error: Invalid table name (t)",
        "Adding entry\nInvalid match key: too long",
        "Invalid PRE operation (4)",
        "Traceback (most recent call last):\n  File",
    ],
)
def test_what_a_refusal_looks_like(answer: str) -> None:
    assert thrift_cli.refusal(answer)


def test_a_name_is_no_refusal() -> None:
    assert thrift_cli.refusal("match key: EXACT-01\naction: Ingress.Invalid\n") is None
