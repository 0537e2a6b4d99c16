"""What control flow tells: missing returns, unreachable statements, reads of unset variables.

Only variables of one body (action, function, apply block, parser state) are followed, and only
scalar ones: what is reported is certain or one branch away from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compiler import ast, types
from compiler.check.statements import Statements
from compiler.typed import TypedProgram

_FOLLOWED = (
    types.Bits,
    types.Boolean,
    types.Enum,
    types.SerializableEnum,
    types.Error,
    types.NewType,
)


@dataclass(slots=True)
class _Path:
    """How far control can come: assigned is what surely has a value; ended: it cannot come here."""

    assigned: frozenset[ast.Declaration]
    ended: bool = False


def _merge(paths: list[_Path]) -> _Path:
    open_paths = [p for p in paths if not p.ended]
    if not open_paths:
        return _Path(frozenset(), ended=True)
    return _Path(frozenset.intersection(*(p.assigned for p in open_paths)))


class _Flow:
    def __init__(self, checker: Statements) -> None:
        self.checker = checker
        self.program: TypedProgram = checker.program
        self.followed: set[ast.Declaration] = set()

    def body(
        self, node: ast.Declaration, parameters: tuple[ast.Parameter, ...], block: ast.Block
    ) -> _Path:
        self.followed = {p for p in parameters if p.direction == "out" and self._scalar(p)}
        end = self.statements(block.statements, _Path(frozenset()))
        for parameter in parameters:
            if parameter in self.followed and not end.ended and parameter not in end.assigned:
                self.checker.warn(
                    parameter,
                    "uninitialized_out_param",
                    f"out parameter '{parameter.name}' may have no value when '{node.name}' ends",
                )
        return end

    def _scalar(self, declaration: ast.Declaration) -> bool:
        return isinstance(self.program.type_of_declaration.get(declaration), _FOLLOWED)

    # ---- statements

    def statements(self, nodes: tuple[ast.Statement | ast.Declaration, ...], path: _Path) -> _Path:
        for node in nodes:
            if path.ended:
                self.checker.warn(node, "unreachable", "this statement is never reached")
                return path
            path = self.statement(node, path)
        return path

    def statement(self, node: ast.Statement | ast.Declaration, path: _Path) -> _Path:
        handler = _STATEMENTS.get(type(node))
        return handler(self, node, path) if handler else path

    def variable(self, node: ast.Variable, path: _Path) -> _Path:
        if node.value is not None:
            return self._set(self.expression(node.value, path), node)
        if self._scalar(node):
            self.followed.add(node)
        return path

    def constant(self, node: ast.Constant, path: _Path) -> _Path:
        return path

    def _set(self, path: _Path, declaration: ast.Declaration) -> _Path:
        return _Path(path.assigned | {declaration})

    def assignment(self, node: ast.Assignment, path: _Path) -> _Path:
        path = self.expression(node.right, path)
        if node.operator:
            path = self.expression(node.left, path)
        return self.target(node.left, path)

    def target(self, node: ast.Expression, path: _Path) -> _Path:
        """node is assigned to; indices in it are read."""
        while isinstance(node, (ast.Member, ast.Index, ast.Slice, ast.PlusSlice)):
            if isinstance(node, ast.Index):
                path = self.expression(node.index, path)
            node = node.base
        declaration = self.program.decl_of.get(node)
        if declaration is None or declaration not in self.followed:
            return path
        return self._set(path, declaration)

    def call_statement(self, node: ast.CallStatement, path: _Path) -> _Path:
        return self.expression(node.call, path)

    def block(self, node: ast.Block, path: _Path) -> _Path:
        return self.statements(node.statements, path)

    def branch(self, node: ast.If, path: _Path) -> _Path:
        path = self.expression(node.condition, path)
        then = self.statement(node.then, path)
        otherwise = self.statement(node.otherwise, path) if node.otherwise else path
        condition = self.program.const_value.get(node.condition)
        if condition is not None:
            return then if condition else otherwise
        return _merge([then, otherwise])

    def switch(self, node: ast.Switch, path: _Path) -> _Path:
        path = self.expression(node.subject, path)
        ends = [self.block(c.body, path) for c in node.cases if c.body is not None]
        has_default = any(isinstance(c.label, ast.DefaultKeyset) for c in node.cases)
        return _merge(ends if has_default and ends else [*ends, path])

    def for_loop(self, node: ast.For, path: _Path) -> _Path:
        path = self.expression(node.condition, self.statements(node.initial, path))
        inside = self.statement(node.body, path)
        self.statements(node.updates, _Path(inside.assigned) if not inside.ended else path)
        return path

    def for_in(self, node: ast.ForIn, path: _Path) -> _Path:
        path = self.expression(node.collection, path)
        self.statement(node.body, path)
        return path

    def result(self, node: ast.Return, path: _Path) -> _Path:
        if node.value is not None:
            path = self.expression(node.value, path)
        return _Path(path.assigned, ended=True)

    def jump(self, node: ast.Statement, path: _Path) -> _Path:
        return _Path(path.assigned, ended=True)

    # ---- expressions

    def expression(self, node: ast.Expression, path: _Path) -> _Path:
        if isinstance(node, ast.NameExpression):
            self._read(node, path)
            return path
        if isinstance(node, ast.Call):
            return self._call(node, path)
        for child in ast.children(node):
            if isinstance(child, ast.Expression):
                path = self.expression(child, path)
            elif isinstance(child, ast.StructMember):
                path = self.expression(child.value, path)
        return path

    def _read(self, node: ast.NameExpression, path: _Path) -> None:
        declaration = self.program.decl_of.get(node)
        if declaration in self.followed and declaration not in path.assigned:
            self.checker.warn(
                node, "uninitialized_use", f"'{node.name}' may not have been given a value yet"
            )

    def _call(self, node: ast.Call, path: _Path) -> _Path:
        info = self.program.calls.get(node)
        if isinstance(node.callee, ast.Member):
            path = self.expression(node.callee.base, path)
        if info is None:
            return path
        outputs: list[ast.Expression] = []
        for bound in info.arguments:
            if bound.value is None:
                continue
            if bound.parameter.direction != "out":
                path = self.expression(bound.value, path)
            if bound.parameter.direction in ("out", "inout"):
                outputs.append(bound.value)
        for output in outputs:
            path = self.target(output, path)
        return path


_STATEMENTS: dict[type, Callable[[Any, Any, _Path], _Path]] = {
    ast.Variable: _Flow.variable,
    ast.Constant: _Flow.constant,
    ast.Assignment: _Flow.assignment,
    ast.CallStatement: _Flow.call_statement,
    ast.Block: _Flow.block,
    ast.If: _Flow.branch,
    ast.Switch: _Flow.switch,
    ast.For: _Flow.for_loop,
    ast.ForIn: _Flow.for_in,
    ast.Return: _Flow.result,
    ast.Exit: _Flow.jump,
    ast.Break: _Flow.jump,
    ast.Continue: _Flow.jump,
}


def check_flow(checker: Statements) -> None:
    """Every body of the program; call it on a program without type errors."""
    for declaration in checker.program.tree.declarations:
        _check_declaration(checker, declaration)


def _check_declaration(checker: Statements, node: ast.Declaration) -> None:
    if isinstance(node, (ast.ControlDeclaration, ast.ParserDeclaration)):
        for local in node.locals:
            _check_declaration(checker, local)
    if isinstance(node, ast.FunctionDeclaration):
        _check_function(checker, node)
    elif isinstance(node, (ast.ActionDeclaration, ast.ControlDeclaration)):
        _Flow(checker).body(node, node.parameters, node.body)
    elif isinstance(node, ast.ParserDeclaration):
        for state in node.states:
            _Flow(checker).statements(state.statements, _Path(frozenset()))
    elif isinstance(node, ast.Instantiation):
        for method in node.initializer or ():
            _check_declaration(checker, method)


def _check_function(checker: Statements, node: ast.FunctionDeclaration) -> None:
    if node.body is None:
        return
    end = _Flow(checker).body(node, node.parameters, node.body)
    type_ = checker.program.type_of_declaration.get(node)
    if end.ended or not isinstance(type_, types.Function) or isinstance(type_.result, types.Void):
        return
    checker.error(node, f"function '{node.name}' does not return a value on all paths")
