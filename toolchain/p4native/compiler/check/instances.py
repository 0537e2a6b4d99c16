"""Checks instances of packages, blocks and externs, and the methods that instances of externs
define."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.calls import CallChecker
from p4native.compiler.check.context import Context
from p4native.compiler.check.expressions import ExpressionChecker
from p4native.compiler.check.functions import FunctionChecker


class InstanceChecker:
    """The part that checks instances, and the methods that instances of externs define."""

    def __init__(
        self,
        context: Context,
        calls: CallChecker,
        expressions: ExpressionChecker,
        functions: FunctionChecker,
    ) -> None:
        self.context = context
        self.calls = calls
        self.expressions = expressions
        self.functions = functions

    def check_instantiation(self, node: ast.Instantiation) -> None:
        if isinstance(node.type_ref, ast.StackTypeRef):
            self.context.diagnostics.unsupported(node.position, f"array of instances '{node.name}'")
            type_: types.Type = types.UNKNOWN
        else:
            type_ = self.expressions.construct(node, node.type_ref, node.arguments)
        is_main = node.name == "main" and self.context.frame.kind == "program"
        if is_main and not isinstance(type_, (types.Package, types.Unknown)):
            hint = (
                "v1model's package takes six blocks: V1Switch(P(), V(), I(), E(), C(), D()) main;"
            )
            self.context.error(node, f"main must be a package, not {type_}", hint)
        problem = "" if is_main else self._misplaced(type_)
        if problem:
            self.context.error(node, f"an instance of {type_} {problem}")
        self.context.record(node, type_)
        self._methods(node, type_)
        self.context.declare(node)

    def _misplaced(self, type_: types.Type) -> str:
        """Returns what is wrong with an instance of `type_` in this place, or an empty string if it
        is allowed here."""
        place = self.context.frame.kind
        if isinstance(type_, types.Package) and place != "program":
            return "belongs outside of all blocks"
        if isinstance(type_, types.Control) and place == "parser":
            return "cannot stand in a parser"
        if isinstance(type_, types.Parser) and place == "control":
            return "cannot stand in a control"
        if isinstance(type_, types.Block) and place == "program":
            return "belongs inside a block or a package's arguments"
        return ""

    def _methods(self, node: ast.Instantiation, type_: types.Type) -> None:
        """Checks the bodies that an instance gives to the abstract methods of its extern type."""
        if isinstance(type_, types.Unknown):
            return
        abstract = {}
        if isinstance(type_, types.Extern):
            abstract = {
                _key(m): m
                for m in self.calls.methods_of(type_)
                if m.declaration and m.declaration.abstract
            }
        elif node.initializer is not None:
            self.context.error(node, f"{type_} has no abstract methods")
            return
        with self.context.nested_scope():
            for declaration in node.initializer or ():
                self._implementation(node, declaration, type_, abstract)
        for name, _ in abstract:
            self.context.error(node, f"no body for the abstract method '{name}' of {type_}")

    def _implementation(
        self,
        node: ast.Instantiation,
        declaration: ast.Declaration,
        type_: types.Type,
        abstract: dict[tuple[str, int], types.Function],
    ) -> None:
        if isinstance(declaration, ast.Instantiation):
            self.check_instantiation(declaration)
            return
        assert isinstance(declaration, ast.FunctionDeclaration)
        extern = type_ if isinstance(type_, types.Extern) else None
        function = self.functions.function_type(declaration, "function", body=True, extern=extern)
        self.context.record(declaration, function)
        wanted = abstract.pop(_key(function), None)
        if wanted is None:
            self.context.error(
                declaration, f"{type_} has no abstract method '{declaration.name}' like this"
            )
        elif not _same_function(wanted, function):
            self.context.error(
                declaration, f"the abstract method is {wanted}, but this is {function}"
            )


def _key(function: types.Function) -> tuple[str, int]:
    name = function.declaration.name if function.declaration else ""
    return name, len(function.parameters)


def _same_function(left: types.Function, right: types.Function) -> bool:
    same = [
        a.type == b.type and a.direction == b.direction
        for a, b in zip(left.parameters, right.parameters, strict=False)
    ]
    return left.result == right.result and all(same)
