"""The prompt on a pseudo-terminal in virtual time: every command, completion, and all ways to
leave."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from shell_dialogue import DIALOGUE, play, windows
from shell_terminal import SCENARIO, Terminal

from agglab.testbed.base.exit_codes import INTERRUPTED, PASSED
from agglab.testbed.cli.shell.commands import COMMANDS
from agglab.testbed.cli.shell.prompt import OWN


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "prompt.yaml"
    path.write_text(SCENARIO)
    return path


def test_the_dialogue_has_every_command() -> None:
    said = {each.line.split()[0] for each in DIALOGUE}
    assert {*COMMANDS, *OWN} - said == {"quit"}


def test_every_command_in_virtual_time(scenario: Path, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    terminal = Terminal([str(scenario)], windows(tmp_path, shown))
    folder = terminal.scratch()
    assert play(terminal, True, shown) == []
    terminal.type("quit\n")
    assert terminal.end() == PASSED
    assert not folder.exists()


def test_words_are_completed(scenario: Path) -> None:
    terminal = Terminal([str(scenario)])
    terminal.type("regi\t")
    terminal.await_text("registers ")
    terminal.type("contrib\t\n")
    assert "s1 contributors[0..3]: 0 0 0 0" in terminal.await_prompt()
    terminal.type("\x04")
    assert terminal.end() == PASSED


@pytest.mark.long(but=["15"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_removes_everything(scenario: Path, number: signal.Signals) -> None:
    terminal = Terminal([str(scenario)])
    folder = terminal.scratch()
    assert terminal.kill(number) == INTERRUPTED
    assert not folder.exists()


def test_ctrl_c_leaves(scenario: Path) -> None:
    terminal = Terminal([str(scenario)])
    folder = terminal.scratch()
    terminal.type("\x03")
    assert terminal.end() == INTERRUPTED
    assert not folder.exists()
