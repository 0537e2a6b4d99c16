"""The prompt of `agglab shell` on real links: every command, Ctrl-C for a host's program, and
`agglab exec` beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from shell_dialogue import play, windows
from shell_terminal import SCENARIO, Terminal
from waiting import until

from agglab.testbed.base.exit_codes import INTERRUPTED, INVALID, PASSED

pytestmark = pytest.mark.root


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "prompt.yaml"
    path.write_text(SCENARIO.replace("virtual", "mininet"))
    return path


def results_of(terminal: Terminal) -> str:
    """The folder that `agglab exec --run` takes."""
    (notes,) = terminal.scratch().glob("*/nodes.json")
    return str(json.loads(notes.read_text())["results"])


def executed(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agglab.testbed", "exec", *words]
    return subprocess.run(command, capture_output=True, text=True)


def test_every_command_on_real_links(scenario: Path, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    terminal = Terminal([str(scenario)], windows(tmp_path, shown))
    folder = terminal.scratch()
    assert play(terminal, False, shown) == []
    terminal.type("\x04")
    assert terminal.end() == PASSED
    assert not folder.exists()


def test_ctrl_c_ends_a_hosts_program_and_then_the_shell(scenario: Path) -> None:
    terminal = Terminal([str(scenario)])
    folder = terminal.scratch()
    terminal.type("h1 sh -c 'echo started; exec sleep 1000'\n")
    terminal.await_text("started\n")
    terminal.type("\x03")
    assert "ended with exit code -2" in terminal.await_prompt()
    assert terminal.ask("nodes").startswith("hosts:")
    terminal.type("\x03")
    assert terminal.end() == INTERRUPTED
    assert not folder.exists()


def test_a_program_at_a_host_reads_from_the_terminal(scenario: Path) -> None:
    terminal = Terminal([str(scenario)])
    terminal.type("h1 sh -c 'echo what; read word; echo it is $word'\n")
    terminal.await_text("what\n")
    terminal.type("this\n")
    assert terminal.await_prompt().endswith("it is this\n")
    terminal.type("quit\n")
    assert terminal.end() == PASSED


def test_exec_runs_a_program_at_a_node_of_the_run(scenario: Path) -> None:
    terminal = Terminal([str(scenario)])
    run = results_of(terminal)
    named = ("--run", run)
    done = executed("h1", *named, "--", "sh", "-c", "ip -br address; exit 7")
    assert done.returncode == 7
    assert "h1-eth0" in done.stdout and "h2-eth0" not in done.stdout
    assert executed("h1", *named, "--", "echo", "h3").stdout == "10.0.0.3\n"
    wrong = executed("h7", *named, "--", "true")
    assert (wrong.returncode, wrong.stderr) == (
        INVALID,
        "h7: no such node; allowed: h1, h2, h3, s1\n",
    )
    terminal.type("quit\n")
    assert terminal.end() == PASSED


def test_what_exec_runs_ends_with_the_network(scenario: Path) -> None:
    terminal = Terminal([str(scenario)])
    run = results_of(terminal)
    command = [sys.executable, "-m", "agglab.testbed", "exec", "h2", "--run", run, "--"]
    beside = subprocess.Popen([*command, "sh", "-c", "echo up; exec sleep 1000"], stdout=-1)
    assert beside.stdout is not None and beside.stdout.readline() == b"up\n"
    terminal.type("quit\n")
    assert terminal.end() == PASSED
    until(lambda: beside.poll() is not None, "the program has ended")
    beside.stdout.close()
