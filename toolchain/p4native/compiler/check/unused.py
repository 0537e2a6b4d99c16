"""Warns about declarations to which nothing refers."""

from __future__ import annotations

from collections.abc import Iterator

from p4native.compiler import ast
from p4native.compiler.check.context import Context, is_of_library
from p4native.compiler.typed import TypedProgram

_PLAIN = (
    ast.ActionDeclaration,
    ast.Constant,
    ast.FunctionDeclaration,
    ast.Instantiation,
    ast.Parameter,
    ast.TypedefDeclaration,
    ast.Variable,
)
_NAMED = {
    ast.ControlDeclaration: "control",
    ast.ParserDeclaration: "parser",
    ast.TableDeclaration: "table",
}


def check_unused(context: Context) -> None:
    """Warns of each declaration in the user's own files that no part of the program names."""
    used = _used(context.program)
    for declaration in context.program.tree.declarations:
        if not is_of_library(declaration):
            for node in _candidates(declaration):
                if node not in used and not _exempt(node):
                    what = _NAMED.get(type(node), "")
                    message = f"{what} '{node.name}' is unused".lstrip()
                    context.warn(node, "unused", message, _hint(node))


def _used(program: TypedProgram) -> set[ast.Node]:
    calls = (c.target for c in program.calls.values() if c.target is not None)
    constructions = (c.target for c in program.constructions.values())
    return {*program.decl_of.values(), *calls, *constructions}


def _candidates(node: ast.Declaration) -> Iterator[ast.Declaration]:
    """Yields a node and the declarations in it. Of parameters, only those of actions are included,
    because callers prescribe the parameters of other declarations."""
    if isinstance(node, (*_PLAIN, *_NAMED)):
        yield node
    if isinstance(node, (ast.ControlDeclaration, ast.ParserDeclaration)):
        inside: tuple[ast.Node, ...] = node.locals
        inside += node.states if isinstance(node, ast.ParserDeclaration) else (node.body,)
        for part in inside:
            yield from _inside(part)
    elif isinstance(node, ast.ActionDeclaration):
        yield from node.parameters
        yield from _inside(node.body)
    elif isinstance(node, ast.FunctionDeclaration) and node.body is not None:
        yield from _inside(node.body)


def _inside(node: ast.Node) -> Iterator[ast.Declaration]:
    if isinstance(node, ast.Declaration):
        yield from _candidates(node)
    if not isinstance(node, (ast.ActionDeclaration, ast.FunctionDeclaration)):
        for child in ast.children(node):
            yield from _inside(child)


def _exempt(node: ast.Declaration) -> bool:
    if node.name == "main" or node.name.startswith("__"):
        return True
    if isinstance(node, ast.FunctionDeclaration) and node.body is None:
        return True
    if isinstance(node, ast.Constant) and _is_assertion(node.value):
        return True
    return any(
        a.name == "noWarn" and any(getattr(x, "value", None) == "unused" for x in a.arguments)
        for a in node.annotations
    )


def _is_assertion(value: ast.Expression) -> bool:
    """Whether the value is a static_assert, which needs no use because it exists for its effect."""
    callee = value.callee if isinstance(value, ast.Call) else None
    return isinstance(callee, ast.NameExpression) and callee.name == "static_assert"


def _hint(node: ast.Declaration) -> str:
    if isinstance(node, ast.TableDeclaration):
        return f"apply it: {node.name}.apply();"
    if isinstance(node, ast.ActionDeclaration):
        return "name it in a table's actions, or call it"
    return '@noWarn("unused") says that this is meant'
