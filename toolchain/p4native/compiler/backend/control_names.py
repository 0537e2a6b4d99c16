"""Finds the names by which the control plane knows keys, parameters and fields."""

from __future__ import annotations

from p4native.compiler import ast
from p4native.compiler.backend.sources import text_at
from p4native.compiler.typed import TypedProgram


def given_name(declaration: ast.Declaration | None, default: str = "") -> str:
    """Returns the name that @name gives to a parameter, field or type. Without @name, returns the
    declared name. Without a declaration, returns `default`."""
    if declaration is None:
        return default
    return _annotated(declaration.annotations) or declaration.name


def _annotated(annotations: tuple[ast.Annotation, ...]) -> str | None:
    for annotation in annotations:
        if annotation.name == "name" and annotation.arguments:
            given = annotation.arguments[0]
            if isinstance(given, ast.StringLiteral):
                return given.value
    return None


def key_name(typed: TypedProgram, element: ast.KeyElement) -> str:
    """Returns the key's @name if it has one, otherwise the expression as written."""
    return _annotated(element.annotations) or written(typed, element.expression)


def written(typed: TypedProgram, expression: ast.Expression) -> str:
    """Returns the text of an expression in which each field has its control-plane name, as p4c
    names keys."""
    if isinstance(expression, ast.NameExpression):
        return expression.name
    if isinstance(expression, ast.Member):
        member = _member_name(typed, expression)
        # a leading dot says that the name is whole, as in @name(".meta.field")
        return (
            member[1:] if member.startswith(".") else f"{written(typed, expression.base)}.{member}"
        )
    if isinstance(expression, ast.Index):
        return f"{written(typed, expression.base)}[{written(typed, expression.index)}]"
    if isinstance(expression, ast.Slice):
        bounds = f"{written(typed, expression.high)}:{written(typed, expression.low)}"
        return f"{written(typed, expression.base)}[{bounds}]"
    if isinstance(expression, ast.IntLiteral):
        # in the base it was written in, as p4c does
        return hex(expression.value) if _is_hexadecimal(expression) else str(expression.value)
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


def _is_hexadecimal(literal: ast.IntLiteral) -> bool:
    text = text_at(literal.position).lower().split("w")[-1].split("s")[-1]
    return text.startswith("0x")


def _member_name(typed: TypedProgram, expression: ast.Member) -> str:
    declared = typed.decl_of.get(expression)
    return given_name(declared) if isinstance(declared, ast.StructField) else expression.member
