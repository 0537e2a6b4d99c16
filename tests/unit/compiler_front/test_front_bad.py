"""One mistake, one file, one exact message: every bad/*.p4 against its .err.

`BLESS=1 pytest ...` (make bless) rewrites the .err files; read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compiler.diagnostics import Diagnostics, render, summary
from compiler.frontend import compile_file
from compiler.preprocess import INCLUDE_DIR, Options

FOLDER = Path(__file__).parent / "bad"
MISTAKES = sorted(FOLDER.glob("*.p4"))


def report(path: Path) -> str:
    """What the compiler prints, with names that do not depend on where the checkout is."""
    diagnostics = Diagnostics()
    compile_file(path.name, Options(), diagnostics)
    text = render(diagnostics.entries) + summary(diagnostics) + "\n"
    assert diagnostics.failed, f"{path.name} compiles"
    return text.replace(str(INCLUDE_DIR), "<include>")


@pytest.mark.parametrize("path", MISTAKES, ids=lambda p: p.stem)
def test_golden_message(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    expected = path.with_suffix(".err")
    printed = report(path)
    if os.environ.get("BLESS"):
        expected.write_text(printed)
    assert printed == expected.read_text(), "read the difference; BLESS=1 accepts it"


def test_no_expectation_without_mistake() -> None:
    assert {p.stem for p in FOLDER.glob("*.err")} == {p.stem for p in MISTAKES}
