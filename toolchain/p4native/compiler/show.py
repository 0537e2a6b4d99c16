"""Writes the result of a stage of the compiler as text, for `--show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from p4native.compiler import ast
from p4native.compiler.source import Position
from p4native.compiler.syntax.lexer import Token
from p4native.compiler.typed import Instance, TypedProgram


def tokens(found: Iterable[Token]) -> str:
    """Returns one line for each token: its place, its kind if that is not the text itself, and its
    text."""
    return "".join(
        f"{t.position}: {t.text if t.kind == t.text else f'{t.kind} {t.text}'}\n" for t in found
    )


def tree(program: ast.Program) -> str:
    """Returns one line for each node, indented by depth, with its plain fields and place."""
    return "".join(f"{line}\n" for line in _tree_lines(program))


def _tree_lines(root: ast.Node) -> Iterator[str]:
    stack: list[tuple[int, str, ast.Node]] = [(0, "", root)]
    while stack:
        depth, label, node = stack.pop()
        yield f"{'  ' * depth}{label}{type(node).__name__}{_plain_fields(node)}  [{node.position}]"
        below = [(depth + 1, f"{name}: ", child) for name, child in _labelled(node)]
        stack.extend(reversed(below))


def _labelled(node: ast.Node) -> Iterator[tuple[str, ast.Node]]:
    for entry in fields(node):
        value: Any = getattr(node, entry.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, ast.Node):
                yield entry.name, item


def _plain_fields(node: ast.Node) -> str:
    shown = []
    for entry in fields(node):
        value = getattr(node, entry.name)
        plain = isinstance(value, (str, int)) and value not in ("", False)
        if plain and not isinstance(value, Position):
            shown.append(f" {entry.name}={value!r}")
    return "".join(shown)


def typed(program: TypedProgram) -> str:
    """Returns the expressions with their types, constant values and the declarations that they
    name, and then the instances."""
    lines = [
        _expression_line(program, node)
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Expression) and node in program.type_of
    ]
    lines += ["", "instances:"]
    if program.main is not None:
        lines += _instance_lines(program.main, 1)
    return "\n".join(lines) + "\n"


def _expression_line(program: TypedProgram, node: ast.Expression) -> str:
    line = f"{node.position}: {type(node).__name__}: {program.type_of[node]}"
    if node in program.implicit_cast:
        line += f" as {program.implicit_cast[node]}"
    if node in program.const_value:
        line += f" = {_value(program.const_value[node])}"
    declaration = program.decl_of.get(node)
    if declaration is not None:
        line += f" -> {declaration.name} ({declaration.position})"
    return line


def _instance_lines(instance: Instance, depth: int) -> list[str]:
    given = ", ".join(f"{n} = {_value(v)}" for n, v in instance.arguments.items())
    lines = [f"{'  ' * depth}{instance.name}: {instance.type} ({given})"]
    for child in instance.children.values():
        lines += _instance_lines(child, depth + 1)
    return lines


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(map(_value, value)) + "}"
    if isinstance(value, (ast.EnumMember, Instance)):
        return value.name
    return repr(value)
