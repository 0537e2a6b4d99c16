"""A small part of `python -m p4native.verification editor`, and that it fails where it must."""

from __future__ import annotations

import pytest

from p4native.common.exit_codes import FAILED, PASSED
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.preprocess import Options
from p4native.lsp.analysis import analysed
from p4native.lsp.text import Text
from p4native.verification.editor import client, command
from p4native.verification.editor.edits import RESET_EVERY, Editor
from p4native.verification.editor.program import program_text

FEW = ["--lines", "150", "--edits", "40", "--pause-ms", "1"]


def test_some_edits(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(FEW) == PASSED
    *_, questions, shown = capsys.readouterr().out.splitlines()
    assert questions.startswith("answer to completion")
    assert shown.split()[:5] == ["message", "about", "an", "edit", "5"]


def test_a_server_that_ends_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "Client", lambda: client.Client(["--unknown"]))
    assert command.main(FEW) == FAILED
    assert "FAILED: the server ended" in capsys.readouterr().err


def test_a_server_that_shows_nothing_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(command, "MISTAKE", "")
    assert command.main([*FEW, "--edits", "0"]) == FAILED


@pytest.mark.parametrize("lines", [1, 200])
def test_the_program_is_long_enough_and_has_no_errors(lines: int) -> None:
    text = program_text(lines)
    assert lines <= text.count("\n") < lines + 150
    analysis = analysed("/long.p4", {"/long.p4": Text(text)}, Options())
    assert analysis.diagnostics == tuple(Diagnostics().entries)


def test_a_seed_makes_the_same_edits() -> None:
    def contents(seed: int) -> list[str]:
        editor = Editor(program_text(1), seed)
        return [editor.change()["text"] for _ in range(50)]

    assert contents(1) == contents(1) != contents(2)


def test_at_times_the_text_is_the_first_one_again() -> None:
    editor = Editor(program_text(1), 1)
    for _ in range(RESET_EVERY - 1):
        editor.change()
    assert editor.content != editor.original
    assert editor.change() == {"text": editor.original}
