"""One mistake, one file, one exact message: every bad/*.p4, which does not compile, and every
warned/*.p4, which does, against its .err.

`BLESS=1 pytest ...` (make bless) rewrites the .err files; read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from p4native.compiler.diagnostics import Diagnostics, render, summary
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import INCLUDE_DIR, Options

HERE = Path(__file__).parent
MISTAKES = sorted((*HERE.glob("bad/*.p4"), *HERE.glob("warned/*.p4")))


def report(path: Path) -> str:
    """What the compiler prints, with names that do not depend on where the checkout is."""
    diagnostics = Diagnostics()
    compile_file(path.name, Options(), diagnostics)
    text = render(diagnostics.entries) + summary(diagnostics) + "\n"
    assert diagnostics.failed == (path.parent.name == "bad"), text
    assert diagnostics.entries, f"{path.name} is not warned of"
    return text.replace(str(INCLUDE_DIR), "<include>")


@pytest.mark.parametrize("path", MISTAKES, ids=lambda p: p.stem)
def test_golden_message(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    expected = path.with_suffix(".err")
    printed = report(path)
    if os.environ.get("BLESS"):
        expected.write_text(printed)
    assert printed == expected.read_text(), "read the difference; BLESS=1 accepts it"


def test_no_expectation_without_mistake() -> None:
    expected = (*HERE.glob("bad/*.err"), *HERE.glob("warned/*.err"))
    assert {p.with_suffix(".p4") for p in expected} == set(MISTAKES)
