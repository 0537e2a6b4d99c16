"""The front end's second half: check every declaration, then elaborate the instance of main."""

from __future__ import annotations

from compiler import ast
from compiler.check.declarations import Declarations
from compiler.check.elaborate import elaborate
from compiler.check.flow import check_flow
from compiler.check.names import check_names
from compiler.diagnostics import Diagnostics
from compiler.typed import TypedProgram


class Checker(Declarations):
    def __init__(self, tree: ast.Program, diagnostics: Diagnostics) -> None:
        super().__init__(tree, diagnostics)
        self.error_members = {}
        self.checked_arguments = set()

    def run(self) -> TypedProgram:
        for declaration in self.program.tree.declarations:
            self.check_declaration(declaration)
        if not self.diagnostics.failed:
            check_flow(self)
        return self.program


def check(tree: ast.Program, diagnostics: Diagnostics) -> TypedProgram:
    """Everything typed.py describes; main is None where diagnostics gained errors."""
    program = Checker(tree, diagnostics).run()
    if not diagnostics.failed:
        elaborate(program, diagnostics)
        check_names(program, diagnostics)
    return program
