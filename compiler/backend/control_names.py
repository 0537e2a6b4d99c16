"""Names by which the control plane knows a table's keys."""

from __future__ import annotations

from compiler import ast
from compiler.typed import TypedProgram


def key_name(typed: TypedProgram, element: ast.KeyElement) -> str:
    """@name, or the expression as written."""
    for annotation in element.annotations:
        if annotation.name == "name" and annotation.arguments:
            given = annotation.arguments[0]
            if isinstance(given, ast.StringLiteral):
                return given.value
    return written(typed, element.expression)


def written(typed: TypedProgram, expression: ast.Expression) -> str:
    """An expression's text with the control-plane names of fields, as p4c names keys."""
    if isinstance(expression, ast.NameExpression):
        return expression.name
    if isinstance(expression, ast.Member):
        return f"{written(typed, expression.base)}.{_member_name(typed, expression)}"
    if isinstance(expression, ast.Index):
        return f"{written(typed, expression.base)}[{written(typed, expression.index)}]"
    if isinstance(expression, ast.Slice):
        bounds = f"{written(typed, expression.high)}:{written(typed, expression.low)}"
        return f"{written(typed, expression.base)}[{bounds}]"
    if isinstance(expression, ast.IntLiteral):
        return str(expression.value)
    if isinstance(expression, ast.Binary):
        left, right = written(typed, expression.left), written(typed, expression.right)
        return f"{left} {expression.operator} {right}"
    if isinstance(expression, ast.Call) and isinstance(expression.callee, ast.Member):
        if expression.callee.member == "isValid":
            return f"{written(typed, expression.callee.base)}.$valid$"
        return f"{written(typed, expression.callee)}()"
    if isinstance(expression, ast.Cast):
        return written(typed, expression.operand)
    return "key"


def _member_name(typed: TypedProgram, expression: ast.Member) -> str:
    declared = typed.decl_of.get(expression)
    annotation = declared.annotation("name") if isinstance(declared, ast.StructField) else None
    if annotation is not None and annotation.arguments:
        given = annotation.arguments[0]
        if isinstance(given, ast.StringLiteral):
            return given.value
    return expression.member
