"""Checks a program. This is the second half of the front end: every declaration is checked, and
then the instance of main is elaborated."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.arguments import ArgumentChecker
from p4native.compiler.check.blocks import BlockChecker
from p4native.compiler.check.calls import CallChecker
from p4native.compiler.check.coerce import Coercion
from p4native.compiler.check.context import Context
from p4native.compiler.check.declarations import DeclarationChecker
from p4native.compiler.check.elaborate import elaborate
from p4native.compiler.check.expressions import ExpressionChecker
from p4native.compiler.check.flow import check_flow
from p4native.compiler.check.functions import FunctionChecker
from p4native.compiler.check.instances import InstanceChecker
from p4native.compiler.check.members import MemberChecker
from p4native.compiler.check.names import check_names
from p4native.compiler.check.operators import OperatorChecker
from p4native.compiler.check.parameters import Parameters
from p4native.compiler.check.statements import StatementChecker
from p4native.compiler.check.tables import TableChecker
from p4native.compiler.check.typerefs import TypeResolver
from p4native.compiler.check.unused import check_unused
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.typed import TypedProgram


class Checker:
    """The checker, which makes its parts and checks a program with them."""

    def __init__(self, tree: ast.Program, diagnostics: Diagnostics) -> None:
        self.context = context = Context(tree, diagnostics)
        self.resolver = TypeResolver(context)
        self.coercion = Coercion(context)
        self.parameters = Parameters(context, self.resolver, self.coercion)
        below = context, self.resolver, self.coercion
        self.operators = OperatorChecker(*below)
        self.members = MemberChecker(context, self.operators)
        self.arguments = ArgumentChecker(context, self.coercion, self.members)
        self.calls = CallChecker(context, self.resolver, self.members, self.arguments)
        self.expressions = ExpressionChecker(
            *below, self.operators, self.members, self.arguments, self.calls
        )
        self.statements = StatementChecker(*below, self.members, self.arguments, self.calls)
        self.tables = TableChecker(*below, self.arguments, self.calls)
        self.functions = FunctionChecker(context, self.resolver, self.parameters, self.statements)
        self.instances = InstanceChecker(context, self.calls, self.expressions, self.functions)
        self.blocks = BlockChecker(
            context,
            self.resolver,
            self.parameters,
            self.statements,
            self.tables,
            self.functions,
            self.instances,
        )
        self.declarations = DeclarationChecker(
            *below, self.parameters, self.statements, self.functions, self.instances, self.blocks
        )

    def run(self) -> TypedProgram:
        for declaration in self.context.program.tree.declarations:
            self.declarations.check_declaration(declaration)
            if declaration.name == "main" and not isinstance(declaration, ast.Instantiation):
                self.context.error(declaration, "'main' must be an instance of a package")
        self._check_annotations()
        if not self.context.diagnostics.failed:
            check_flow(self.context)
        if not self.context.diagnostics.failed:
            check_unused(self.context)
        return self.context.program

    def _check_annotations(self) -> None:
        """Checks the values of structured annotations, and that no annotation contains a name
        twice."""
        for node in ast.walk(self.context.program.tree):
            given: tuple[ast.Annotation, ...] = getattr(node, "annotations", ())
            for annotation in given:
                self._check_known_annotation(annotation)
            for annotation in (a for a in given if a.structured):
                for value in (*annotation.arguments, *(v for _, v in annotation.pairs)):
                    self._check_annotation_value(value)
                same = [a for a in given if a.name == annotation.name]
                if same[-1] is annotation and len(same) > 1:
                    first = same[0].position
                    self.context.error(
                        annotation, f"@{annotation.name} is already given at {first}"
                    )

    def _check_known_annotation(self, annotation: ast.Annotation) -> None:
        """Checks the arguments of an annotation that has a meaning to the compiler."""
        for value in annotation.arguments:
            if annotation.name == "deprecated":
                self.context.check(value)
                if not isinstance(self.context.program.const_value.get(value), str):
                    self.context.error(value, "@deprecated needs a string known at compile time")
            elif annotation.name == "field_list":
                self.context.check(value)
                known = self.context.program.const_value.get(value)
                if not isinstance(known, int) and known not in self.context.program.enum_values:
                    self.context.error(value, "@field_list needs numbers known at compile time")
            elif annotation.name == "match" and (
                not isinstance(value, ast.NameExpression)
                or value.name not in self.context.program.match_kinds
            ):
                known = "there are " + ", ".join(self.context.program.match_kinds)
                self.context.error(value, "@match needs a match kind", known)

    def _check_annotation_value(self, value: ast.Expression) -> None:
        type_ = self.context.check(value)
        known = isinstance(self.context.program.const_value.get(value), (bool, int, str))
        if not known and not isinstance(type_, types.Unknown):
            self.context.error(
                value, "a value in an annotation must be a number, a string or a truth value"
            )


def check(tree: ast.Program, diagnostics: Diagnostics) -> TypedProgram:
    """Checks a program and returns the result that typed.py describes. Its `main` is None if errors
    were reported."""
    program = Checker(tree, diagnostics).run()
    if not diagnostics.failed:
        elaborate(program, diagnostics)
        check_names(program, diagnostics)
    return program
