"""One mistake, one file, one exact message: every bad/*.p4, which does not compile, and every
warned/*.p4, which does, against its .err.

`BLESS=1 pytest ...` (make bless) rewrites the .err files; read the diff.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4native import compiler
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


UNSHOWN = {
    "{} is '{}' and cannot take {}",
    "{} cannot be an argument",
    "{} has no body to apply",
    "the value of parameter '{}' is not known at compile time",
    "the program has more than {} instances",
    "{} cannot be an element of a list",
    "a function cannot return {}",
    "the left side has type {}, but the result is {}",
    "{} has type {}, but the elements have type {}",
    "{} here needs all its type arguments",
}
"""The messages of the checker that no short program shows."""


def messages() -> Iterator[str]:
    """Yields the errors and warnings that p4native.compiler.check writes out where it reports
    them, with {} in place of what differs."""
    for path in (Path(compiler.__file__).parent / "check").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                place = {"error": 1, "warn": 2}.get(node.func.attr, len(node.args))
                yield from map(_written, node.args[place : place + 1])


def _written(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_written, node.values))
    return str(node.value) if isinstance(node, ast.Constant) else "{}"


def test_every_message_is_shown_by_a_program() -> None:
    """Otherwise a fault in its condition is noticed by nobody."""
    written = set(messages()) - {"{}"}
    assert len(written) > 150
    expected = "\n".join(p.with_suffix(".err").read_text() for p in MISTAKES)
    shown = re.findall(r": (?:error|warning): (.*?)(?: \[--W.*)?$", expected, re.MULTILINE)
    patterns = {m: re.compile(re.escape(m).replace(r"\{\}", ".+?")) for m in written}
    assert {m for m, p in patterns.items() if not any(map(p.fullmatch, shown))} == UNSHOWN
