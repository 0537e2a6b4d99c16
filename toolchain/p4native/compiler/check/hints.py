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
    **dict.fromkeys(("drop", "_drop"), "a packet is dropped by mark_to_drop(standard_metadata)"),
    "modify_field": "P4_16 writes `x = value;`",
    "add_to_field": "P4_16 writes `x = x + value;`",
    "add_header": "P4_16 writes `header.setValid();`",
    "remove_header": "P4_16 writes `header.setInvalid();`",
    "register_read": "P4_16 writes `name.read(result, index);`",
    "register_write": "P4_16 writes `name.write(index, value);`",
    "apply": "P4_16 writes `table.apply();`",
    "pow": "a power of two is written 1 << n",
}


_PACKET = "packets are read in a parser (extract) and written in a deparser (emit)"


def of_packet(name: str) -> str:
    """Returns a hint for an undeclared name that is probably a packet's, or an empty string."""
    return _PACKET if name in ("packet", "pkt", "packet_in", "packet_out", "b") else ""


def of_condition(type_: types.Type) -> str:
    """Returns how a value of this type becomes a condition, or an empty string."""
    if isinstance(type_, types.Bits):
        return "compare it: ... != 0"
    if isinstance(type_, types.ApplyResult):
        return f"write {type_.table.name}.apply().hit, or .miss"
    if isinstance(type_, types.Header):
        return "write .isValid()"
    return ""


def of_assignment(type_: types.Type) -> str:
    """Returns how something of this type, which is no variable, gets a value."""
    is_register = isinstance(type_, types.Extern) and type_.name == "register"
    return "write .write(index, value)" if is_register else ""


def of_argument(
    parameter: types.ParameterType,
    wanted: types.Type,
    actual: types.Type,
    pairs: Sequence[tuple[types.ParameterType, ast.Argument | None]],
) -> str:
    """Returns what helps where an argument has another type than its parameter. pairs: all
    parameters of the call with their arguments."""
    outputs = [a for p, a in pairs if p.direction == "out" and a is not None]
    if any(isinstance(argument.value, ast.IntLiteral) for argument in outputs):
        return f"the order is ({', '.join(p.name for p, _ in pairs)})"
    if not isinstance(wanted, types.Bits) or not isinstance(actual, types.Bits):
        return ""
    if parameter.direction in ("out", "inout"):
        return f"the variable given here must have the type {wanted}"
    return f"convert it: ({wanted})(...)" if wanted.signed == actual.signed else ""


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
