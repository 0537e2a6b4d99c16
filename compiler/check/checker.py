"""The front end's second half: check every declaration, then elaborate the instance of main."""

from __future__ import annotations

from agglab.compiler import ast, types
from agglab.compiler.check.declarations import Declarations
from agglab.compiler.check.elaborate import elaborate
from agglab.compiler.check.flow import check_flow
from agglab.compiler.check.names import check_names
from agglab.compiler.check.unused import check_unused
from agglab.compiler.diagnostics import Diagnostics
from agglab.compiler.typed import TypedProgram


class Checker(Declarations):
    def __init__(self, tree: ast.Program, diagnostics: Diagnostics) -> None:
        super().__init__(tree, diagnostics)
        self.error_members = {}
        self.checked_arguments = set()

    def run(self) -> TypedProgram:
        for declaration in self.program.tree.declarations:
            self.check_declaration(declaration)
            if declaration.name == "main" and not isinstance(declaration, ast.Instantiation):
                self.error(declaration, "'main' must be an instance of a package")
        self._check_annotations()
        if not self.diagnostics.failed:
            check_flow(self)
        if not self.diagnostics.failed:
            check_unused(self)
        return self.program

    def _check_annotations(self) -> None:
        """Structured ones: their values, and that no name is given twice."""
        for node in ast.walk(self.program.tree):
            given: tuple[ast.Annotation, ...] = getattr(node, "annotations", ())
            for annotation in given:
                self._check_known_annotation(annotation)
            for annotation in (a for a in given if a.structured):
                for value in (*annotation.arguments, *(v for _, v in annotation.pairs)):
                    self._check_annotation_value(value)
                same = [a for a in given if a.name == annotation.name]
                if same[-1] is annotation and len(same) > 1:
                    first = same[0].position
                    self.error(annotation, f"@{annotation.name} is already given at {first}")

    def _check_known_annotation(self, annotation: ast.Annotation) -> None:
        """The arguments of those that have a meaning."""
        for value in annotation.arguments:
            if annotation.name == "deprecated":
                self.check(value)
                if not isinstance(self.program.const_value.get(value), str):
                    self.error(value, "@deprecated needs a string known at compile time")
            elif annotation.name == "field_list":
                self.check(value)
                known = self.program.const_value.get(value)
                if not isinstance(known, int) and known not in self.program.enum_values:
                    self.error(value, "@field_list needs numbers known at compile time")
            elif annotation.name == "match" and (
                not isinstance(value, ast.NameExpression)
                or value.name not in self.program.match_kinds
            ):
                known = "there are " + ", ".join(self.program.match_kinds)
                self.error(value, "@match needs a match kind", known)

    def _check_annotation_value(self, value: ast.Expression) -> None:
        type_ = self.check(value)
        known = isinstance(self.program.const_value.get(value), (bool, int, str))
        if not known and not isinstance(type_, types.Unknown):
            self.error(
                value, "a value in an annotation must be a number, a string or a truth value"
            )


def check(tree: ast.Program, diagnostics: Diagnostics) -> TypedProgram:
    """Everything typed.py describes; main is None where diagnostics gained errors."""
    program = Checker(tree, diagnostics).run()
    if not diagnostics.failed:
        elaborate(program, diagnostics)
        check_names(program, diagnostics)
    return program
