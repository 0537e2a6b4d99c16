"""Control-plane names: no two tables, actions or objects of a program may share one."""

from __future__ import annotations

from compiler import ast, types
from compiler.diagnostics import Diagnostics
from compiler.typed import Instance, TypedProgram, qualified

_KINDS: dict[type, str] = {ast.TableDeclaration: "table", ast.ActionDeclaration: "action"}


def check_names(program: TypedProgram, diagnostics: Diagnostics) -> None:
    """Reports each name used twice among objects of one kind."""
    found: dict[tuple[str, str], ast.Node] = {}
    for declaration in program.tree.declarations:
        if isinstance(declaration, ast.ActionDeclaration):
            _enter(found, "action", qualified("", declaration), declaration, diagnostics)
    if program.main is not None:
        pending = [program.main, *program.globals.values()]
        visited: set[Instance] = set()
        while pending:
            instance = pending.pop()
            if instance in visited:
                continue
            visited.add(instance)
            _enter_locals(found, instance, diagnostics)
            pending.extend(instance.children.values())
            pending.extend(v for v in instance.arguments.values() if isinstance(v, Instance))


def _enter_locals(
    found: dict[tuple[str, str], ast.Node], instance: Instance, diagnostics: Diagnostics
) -> None:
    if isinstance(instance.declaration, ast.ControlDeclaration):
        for local in instance.declaration.locals:
            kind = _KINDS.get(type(local))
            if kind is not None:
                _enter(found, kind, instance.name_of(local), local, diagnostics)
    elif isinstance(instance.type, types.Extern) and instance.node is not None:
        _enter(found, instance.type.name, instance.name, instance.node, diagnostics)


def _enter(
    found: dict[tuple[str, str], ast.Node],
    kind: str,
    name: str,
    node: ast.Node,
    diagnostics: Diagnostics,
) -> None:
    first = found.get((kind, name))
    if first is None or name == "NoAction":
        found[kind, name] = node
        return
    other = "another instance of it" if first is node else f"the one at {first.position}"
    diagnostics.error(
        node.position,
        f"the control-plane name '{name}' of this {kind} is taken by {other}",
        'give one of them another name: @name("...")',
    )
