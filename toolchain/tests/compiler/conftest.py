"""What the front end's tests share: source text in, typed program and diagnostics out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from p4native.compiler import ast
from p4native.compiler.diagnostics import Diagnostic, Diagnostics
from p4native.compiler.frontend import check_text, parse_text
from p4native.compiler.typed import TypedProgram

FILE = "test.p4"
UNUSED = " is unused"


@dataclass
class Checked:
    """A program that was checked, with its source for finding expressions by their text."""

    text: str
    program: TypedProgram
    diagnostics: Diagnostics

    def constant(self, name: str) -> Any:
        """The value of the top-level constant called name."""
        return self.program.const_value[self.declaration(name, ast.Constant).value]

    def declaration(self, name: str, kind: type = ast.Declaration) -> Any:
        """The first declaration of that name and kind, however deep."""
        return next(n for n in self.nodes(kind) if n.name == name)

    def nodes(self, kind: type) -> list[Any]:
        return [n for n in ast.walk(self.program.tree) if isinstance(n, kind)]

    def type_of(self, text: str) -> str:
        """The type of the first expression whose place spells text."""
        return str(self.program.type_of[self.expression(text)])

    def expression(self, text: str) -> ast.Expression:
        lines = self.text.split("\n")
        for node in self.nodes(ast.Expression):
            place = node.position
            written = lines[place.line - 1][place.column - 1 : place.column - 1 + place.length]
            if written == text and node in self.program.type_of:
                return node
        raise LookupError(text)


@pytest.fixture
def parse() -> Callable[[str], ast.Program]:
    """The tree of a program that must have no syntax error."""

    def run(text: str) -> ast.Program:
        diagnostics = Diagnostics()
        tree = parse_text(text, FILE, diagnostics)
        assert tree is not None, [d.message for d in diagnostics.entries]
        return tree

    return run


@pytest.fixture
def check() -> Callable[[str], Checked]:
    """A program that must have no error."""

    def run(text: str) -> Checked:
        diagnostics = Diagnostics()
        program = check_text(text, FILE, diagnostics)
        assert program is not None, [f"{d.position} {d.message}" for d in diagnostics.entries]
        return Checked(text, program, diagnostics)

    return run


@pytest.fixture
def errors_of() -> Callable[[str], list[tuple[int, str]]]:
    """(line, message) of each error in a program."""

    def run(text: str) -> list[tuple[int, str]]:
        diagnostics = Diagnostics()
        check_text(text, FILE, diagnostics)
        return [(d.position.line, d.message) for d in diagnostics.entries if d.level == "error"]

    return run


@pytest.fixture
def warnings_of() -> Callable[[str], list[tuple[int, str]]]:
    """(line, kind) of each warning in a program without errors, but those of unused declarations,
    of which the small programs of tests are full."""

    def run(text: str) -> list[tuple[int, str]]:
        warnings = _warnings(text)
        return [(d.position.line, d.kind) for d in warnings if not d.message.endswith(UNUSED)]

    return run


@pytest.fixture
def unused_in() -> Callable[[str], list[str]]:
    """What is unused in a program without errors, as the warnings call it."""

    def run(text: str) -> list[str]:
        messages = [d.message for d in _warnings(text)]
        return [m.removesuffix(UNUSED) for m in messages if m.endswith(UNUSED)]

    return run


def _warnings(text: str) -> list[Diagnostic]:
    diagnostics = Diagnostics()
    program = check_text(text, FILE, diagnostics)
    assert program is not None, [d.message for d in diagnostics.entries]
    return [d for d in diagnostics.entries if d.level == "warning"]
