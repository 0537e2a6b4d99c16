"""Finds the variables that a piece of the tree reads and writes. A variable or a part of it is
given as a path: a declaration and the names of members.

The result decides whether an argument can be used itself under its parameter's name or has to be
copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from p4native.compiler import ast
from p4native.compiler.typed import CallKind, TypedProgram

# A declaration and the members below it; an index ends the path.
Path = tuple[object, ...]


@dataclass
class Effects:
    mentions: set[Path] = field(default_factory=set)
    writes: set[Path] = field(default_factory=set)
    calls: bool = False


def overlap(left: Path, right: Path) -> bool:
    return all(a == b for a, b in zip(left, right, strict=False))


def any_overlap(left: set[Path], right: set[Path]) -> bool:
    return any(overlap(a, b) for a in left for b in right)


def path_of(typed: TypedProgram, expression: ast.Expression) -> Path | None:
    """Returns the path of an l-value, or None if the expression is not an l-value."""
    if isinstance(expression, ast.NameExpression):
        declaration = typed.decl_of.get(expression)
        return (declaration,) if declaration is not None else None
    if isinstance(expression, ast.Member):
        base = path_of(typed, expression.base)
        if base is None or any(step == "[]" for step in base):
            return base
        return (*base, expression.member)
    if isinstance(expression, (ast.Index, ast.Slice)):
        base = path_of(typed, expression.base)
        return None if base is None else (*base, "[]")[: len(base) + 1]
    return None


def _cut(path: Path) -> Path:
    """Returns the path up to its first index."""
    return path[: path.index("[]")] if "[]" in path else path


def effects(typed: TypedProgram, root: ast.Node) -> Effects:
    """Returns the variables that `root` and the actions that it calls read and write."""
    found = Effects()
    _gather(typed, root, found, set())
    return found


def _gather(typed: TypedProgram, node: ast.Node, found: Effects, seen: set[ast.Node]) -> None:
    if isinstance(node, ast.Expression):
        path = path_of(typed, node)
        if path is not None:
            found.mentions.add(_cut(path))
            for index in _indices(node):
                _gather(typed, index, found, seen)
            return
    if isinstance(node, ast.Assignment):
        _write(typed, node.left, found)
    elif isinstance(node, ast.Call):
        found.calls = True
        _gather_call(typed, node, found, seen)
    for below in ast.children(node):
        _gather(typed, below, found, seen)


def _indices(node: ast.Expression) -> Iterator[ast.Expression]:
    """Yields the index expressions inside an l-value."""
    while isinstance(node, (ast.Member, ast.Index, ast.Slice)):
        if isinstance(node, ast.Index):
            yield node.index
        node = node.base


def _write(typed: TypedProgram, target: ast.Expression, found: Effects) -> None:
    path = path_of(typed, target)
    if path is not None:
        found.writes.add(_cut(path))
        found.mentions.add(_cut(path))


def _gather_call(typed: TypedProgram, call: ast.Call, found: Effects, seen: set[ast.Node]) -> None:
    info = typed.calls.get(call)
    if info is None:
        return
    for bound in info.arguments:
        if bound.parameter.direction in ("out", "inout") and bound.value is not None:
            _write(typed, bound.value, found)
    if info.kind in (CallKind.HEADER_METHOD, CallKind.STACK_METHOD) and info.receiver:
        _write(typed, info.receiver, found)
    if info.kind is CallKind.ACTION and info.target is not None and info.target not in seen:
        seen.add(info.target)
        assert isinstance(info.target, ast.ActionDeclaration)
        _gather(typed, info.target.body, found, seen)
    if info.kind is CallKind.TABLE_APPLY and info.target is not None and info.target not in seen:
        seen.add(info.target)
        assert isinstance(info.target, ast.TableDeclaration)
        _gather(typed, info.target, found, seen)
        for reference in info.target.actions:
            action = typed.decl_of.get(reference)
            if isinstance(action, ast.ActionDeclaration) and action not in seen:
                seen.add(action)
                _gather(typed, action.body, found, seen)
