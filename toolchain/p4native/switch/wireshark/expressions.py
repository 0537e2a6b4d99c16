"""Translates the expressions of parsers to Lua, in terms of the functions of runtime.lua."""

from __future__ import annotations

from collections.abc import Callable

from p4native.switch import expression as e

INFIX: dict[str, str] = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "modulo",
    "<<": "shift_left",
    ">>": "shift_right",
    "&": "band",
    "|": "bor",
    "^": "bxor",
    "two_comp_mod": "low_bits",
    "usat_cast": "saturated",
    "sat_cast": "saturated_signed",
}
COMPARISONS: dict[str, str] = {
    "==": "is_equal({0}, {1})",
    "!=": "is_not(is_equal({0}, {1}))",
    "<": "is_less({0}, {1})",
    ">": "is_less({1}, {0})",
    "<=": "is_not(is_less({1}, {0}))",
    ">=": "is_not(is_less({0}, {1}))",
}
LOGIC: dict[str, str] = {
    "and": "both({0}, {1})",
    "or": "either({0}, {1})",
    "==": "is_equal({0}, {1})",
    "!=": "is_not(is_equal({0}, {1}))",
}
NUMBER_BITS = 48
"""The width up to which runtime.lua keeps values as numbers."""


def quoted(text: str) -> str:
    """Returns a Lua string literal. Names in a program's JSON may hold anything."""
    return '"' + "".join(_escaped(byte) for byte in text.encode()) + '"'


def _escaped(byte: int) -> str:
    plain = 32 <= byte < 127 and byte not in b'"\\'
    return chr(byte) if plain else f"\\{byte:03d}"


def literal(value: int) -> str:
    """Returns a number in the form in which runtime.lua keeps values."""
    return str(value) if abs(value) < 1 << NUMBER_BITS else quoted(f"{value:x}")


def data(node: e.Data) -> str:
    """Returns Lua for the value of an expression. Registers and what else a capture does not hold
    are nil."""
    writer = DATA.get(type(node))
    return writer(node) if writer else "nil"


def _field(node: e.FieldOf) -> str:
    if node.field is None:
        return f"number_of(is_valid(d, {header(node.header)}))"
    read = f"field(d, {header(node.header)}, {quoted(node.field.name)})"
    return f"signed({read}, {node.field.bits})" if node.field.signed else read


def _arithmetic(node: e.Arithmetic) -> str:
    return f"{INFIX[node.op]}({data(node.left)}, {data(node.right)})"


DATA: dict[type, Callable[..., str]] = {
    e.Const: lambda node: literal(node.value),
    e.FieldOf: _field,
    e.Lookahead: lambda node: f"lookahead(d, {node.offset}, {node.bits})",
    e.StackCount: lambda node: f"count_of(d, {quoted(node.stack.name)}) - {node.minus}",
    e.Arithmetic: _arithmetic,
    e.Complement: lambda node: f"subtract(-1, {data(node.value)})",
    e.ChooseData: lambda node: (
        f"choose({boolean(node.condition)}, {data(node.yes)}, {data(node.no)})"
    ),
    e.BoolToData: lambda node: f"number_of({boolean(node.value)})",
}


def boolean(node: e.Bool) -> str:
    """Returns Lua for a truth value, which may be nil."""
    writer = BOOLEANS.get(type(node))
    return writer(node) if writer else "nil"


BOOLEANS: dict[type, Callable[..., str]] = {
    e.BoolConstant: lambda node: "true" if node.value else "false",
    e.DataToBool: lambda node: f"is_not(is_equal({data(node.value)}, 0))",
    e.Compare: lambda node: COMPARISONS[node.op].format(data(node.left), data(node.right)),
    e.Logic: lambda node: LOGIC[node.op].format(boolean(node.left), boolean(node.right)),
    e.Not: lambda node: f"is_not({boolean(node.value)})",
    e.ChooseBool: lambda node: (
        f"choose({boolean(node.condition)}, {boolean(node.yes)}, {boolean(node.no)})"
    ),
    e.Valid: lambda node: f"is_valid(d, {header(node.header)})",
}


def header(node: e.HeaderExpression) -> str:
    """Returns Lua for the name of a header; it is nil for an element outside its stack."""
    if isinstance(node, e.HeaderRef):
        return quoted(node.header.name)
    if isinstance(node, e.StackElement):
        return f"element({quoted(node.stack.name)}, {data(node.index)})"
    if isinstance(node, e.LastElement):
        return f"last_of(d, {quoted(node.stack.name)})"
    if isinstance(node, e.UnionMember):
        return _member(node.union, node.member)
    assert isinstance(node, e.ChooseHeader)
    return f"choose({boolean(node.condition)}, {header(node.yes)}, {header(node.no)})"


def _member(union: e.UnionExpression, member: int) -> str:
    if isinstance(union, e.UnionRef):
        return quoted(union.union.headers[member].name)
    assert isinstance(union, e.UnionElement | e.LastUnion)
    stack = quoted(member_stack(union.stack.name, member))
    if isinstance(union, e.UnionElement):
        return f"element({stack}, {data(union.index)})"
    return f"stacks[{stack}][count_of(d, {quoted(union.stack.name)})]"


def member_stack(name: str, member: int) -> str:
    """Returns the name under which runtime.lua keeps one member of all unions of a stack."""
    return f"{name}\0{member}"
