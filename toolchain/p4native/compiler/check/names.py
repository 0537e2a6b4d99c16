"""Checks control-plane names: no two tables, actions or objects of one program may share a name."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.typed import Instance, TypedProgram, qualified

_KINDS: dict[type, str] = {ast.TableDeclaration: "table", ast.ActionDeclaration: "action"}


def check_names(program: TypedProgram, diagnostics: Diagnostics) -> None:
    """Reports each name used twice among objects of one kind.

    Some declarations are ignored: tables that are never applied, and actions that only such tables
    or no parts of the program name.
    """
    found: dict[tuple[str, str], ast.Node] = {}
    named = _named(program)
    for declaration in program.tree.declarations:
        if isinstance(declaration, ast.ActionDeclaration) and declaration in named:
            _enter(found, "action", qualified("", declaration), declaration, diagnostics)
    if program.main is not None:
        pending = [program.main, *program.globals.values()]
        visited: set[Instance] = set()
        while pending:
            instance = pending.pop()
            if instance in visited:
                continue
            visited.add(instance)
            _enter_locals(found, instance, named, diagnostics)
            pending.extend(instance.children.values())
            pending.extend(v for v in instance.arguments.values() if isinstance(v, Instance))


def _named(program: TypedProgram) -> set[ast.Node]:
    """Returns the declarations to which the program refers. References in tables that are never
    applied do not count."""
    used = set(program.decl_of.values())
    idle = {
        node
        for control in program.tree.declarations
        if isinstance(control, ast.ControlDeclaration)
        for table in control.locals
        if isinstance(table, ast.TableDeclaration) and table not in used
        for node in ast.walk(table)
    }
    return {target for reference, target in program.decl_of.items() if reference not in idle}


def _enter_locals(
    found: dict[tuple[str, str], ast.Node],
    instance: Instance,
    named: set[ast.Node],
    diagnostics: Diagnostics,
) -> None:
    if isinstance(instance.declaration, ast.ControlDeclaration):
        for local in instance.declaration.locals:
            kind = _KINDS.get(type(local))
            if kind is not None and local in named:
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
