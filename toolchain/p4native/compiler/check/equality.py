"""Compares two expressions by what they say. A table's default action and entries must repeat the
arguments of its action list in this sense."""

from __future__ import annotations

from dataclasses import fields

from p4native.compiler import ast
from p4native.compiler.source import Position
from p4native.compiler.typed import TypedProgram


def same_expression(
    left: ast.Expression | None, right: ast.Expression | None, program: TypedProgram
) -> bool:
    """Whether the expressions are equal constants, or apply the same operators to the same
    declarations."""
    if left is None or right is None:
        return left is right
    known = program.const_value.get(left), program.const_value.get(right)
    if known != (None, None):
        return known[0] == known[1]
    if type(left) is not type(right):
        return False
    if program.decl_of.get(left) is not program.decl_of.get(right):
        return False
    if isinstance(left, ast.StructExpression) and isinstance(right, ast.StructExpression):
        return _same_members(left, right, program)
    return all(_same(getattr(left, f.name), getattr(right, f.name), program) for f in fields(left))


def _same_members(
    left: ast.StructExpression, right: ast.StructExpression, program: TypedProgram
) -> bool:
    """Whether both expressions have the same value for each name. The order of the names does not
    matter."""
    given = {m.name: m.value for m in left.members}
    wanted = {m.name: m.value for m in right.members}
    return given.keys() == wanted.keys() and all(
        same_expression(value, wanted[name], program) for name, value in given.items()
    )


def _same(left: object, right: object, program: TypedProgram) -> bool:
    if isinstance(left, Position):
        return True
    if isinstance(left, ast.Expression) and isinstance(right, ast.Expression):
        return same_expression(left, right, program)
    if isinstance(left, tuple) and isinstance(right, tuple):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(_same(a, b, program) for a, b in pairs)
    if isinstance(left, ast.Node) and isinstance(right, ast.Node):
        return type(left) is type(right) and all(
            _same(getattr(left, f.name), getattr(right, f.name), program) for f in fields(left)
        )
    return left == right
