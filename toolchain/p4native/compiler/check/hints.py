"""Hints for names, calls and operands that do not fit: how P4 says what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence

from p4native.compiler import ast, types

_LOG = 'to see a value, write log_msg("value: {}", {value})'
FOREIGN_NAMES = {
    **dict.fromkeys(("printf", "print", "println", "puts", "log"), _LOG),
    "True": "did you mean 'true'?",
    "False": "did you mean 'false'?",
    **dict.fromkeys(
        ("null", "NULL", "None", "nullptr"),
        "P4 has no null; whether a header is there, says header.isValid()",
    ),
    "valid": "write header.isValid()",
    "isValid": "write header.isValid()",
    "sizeof": "write header.minSizeInBytes()",
}


def of_call(
    receiver: str,
    name: str,
    parameters: Sequence[types.ParameterType],
    arguments: Sequence[ast.Argument],
) -> str:
    """Returns how a function with these parameters is called. receiver: the text in front of its
    name, such as "tags."."""
    names = [parameter.name for parameter in parameters]
    outputs = [parameter.name for parameter in parameters if parameter.direction == "out"]
    hint = f"write {receiver}{name}({', '.join(names)})"
    if len(outputs) == 1 and len(arguments) == len(names) - 1:
        hint += f": it returns nothing, and the value goes to the variable given for '{outputs[0]}'"
    return hint


def of_operands(node: ast.Binary, left: types.Type, right: types.Type) -> str:
    """Returns what helps where the operands of a comparison or an operation have two types."""
    for operand in (node.left, node.right):
        if isinstance(operand, ast.Binary) and operand.operator in ("&", "|", "^"):
            single, logical = operand.operator, {"&": "&&", "|": "||"}.get(operand.operator)
            meant = f"write {logical}, or " if logical else "write "
            return f"{single} binds more tightly than {node.operator}: {meant}parentheses"
    if isinstance(left, types.Header) or isinstance(right, types.Header):
        return "compare a field of the header; whether it is there, says isValid()"
    if isinstance(left, types.Bits) and isinstance(right, types.Bits):
        wider = left if left.width > right.width else right
        return f"convert one of them: ({wider})(...)" if left.signed == right.signed else ""
    return "a bit becomes a truth value by `== 1`" if types.BOOLEAN in (left, right) else ""
