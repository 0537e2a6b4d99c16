"""Finds the tables and actions that P4Info lists, and their order.

The order is that of the declarations, as in p4c. The declarations of a control stand where its
instance is declared, or at the end of the block that applies it without an instance. Actions that
are declared outside of all controls come before those of the control whose tables list them.
"""

from __future__ import annotations

from collections.abc import Iterator

from p4native.compiler import ast
from p4native.compiler.backend.scope import TableSite, Unit
from p4native.compiler.typed import Instance, TypedProgram

TABLE, ACTION = "table", "action"
Named = tuple[str, str]
Actions = dict[str, ast.ActionDeclaration | None]


def visible(declaration: ast.Declaration | None) -> bool:
    """Whether the control plane sees a declaration: all are visible except those marked
    `@hidden`."""
    return declaration is None or declaration.annotation("hidden") is None


def in_order(typed: TypedProgram, unit: Unit) -> tuple[list[TableSite], Actions]:
    """Returns the tables and the actions, by full name, that the control plane sees."""
    sites = {site.table.name: site for site in unit.tables}
    blocks = typed.main.arguments.values() if typed.main is not None else ()
    named = [n for b in blocks if isinstance(b, Instance) for n in _named(b, sites)]
    rank = {name: i for i, name in reversed(list(enumerate(named)))}
    tables = sorted(unit.tables, key=lambda s: rank.get((TABLE, s.table.name), len(named)))
    actions = sorted(
        unit.control_plane_actions.items(), key=lambda a: rank.get((ACTION, a[0]), len(named))
    )
    return (
        [site for site in tables if visible(site.declaration)],
        {name: declaration for name, declaration in actions if visible(declaration)},
    )


def _named(block: Instance, sites: dict[str, TableSite]) -> Iterator[Named]:
    yield from _global_actions(block, sites)
    yield from _declared(block)


def _global_actions(block: Instance, sites: dict[str, TableSite]) -> Iterator[Named]:
    """Yields the actions declared outside of a control that the control's tables list. Includes the
    tables of the controls inside it."""
    if isinstance(block.declaration, ast.ControlDeclaration):
        locals_ = block.declaration.locals
        own = {block.name_of(node) for node in locals_ if isinstance(node, ast.ActionDeclaration)}
        for name in (block.name_of(n) for n in locals_ if isinstance(n, ast.TableDeclaration)):
            used = sites[name].table.actions if name in sites else []
            yield from ((ACTION, action.name) for action in used if action.name not in own)
        for child in block.children.values():
            yield from _global_actions(child, sites)


def _declared(block: Instance) -> Iterator[Named]:
    if not isinstance(block.declaration, ast.ControlDeclaration):
        return
    locals_ = block.declaration.locals
    for node in locals_:
        if isinstance(node, ast.TableDeclaration):
            yield TABLE, block.name_of(node)
        elif isinstance(node, ast.ActionDeclaration):
            yield ACTION, block.name_of(node)
        elif node in block.children:
            yield from _declared(block.children[node])
    for site, child in block.children.items():
        if site not in locals_:
            yield from _declared(child)
