"""Tables: finds the entry that a packet matches, and executes its action."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.typed import BoundArgument, CallInfo, CallKind
from p4native.verification.interpreter.context import Context
from p4native.verification.interpreter.expressions import Expressions
from p4native.verification.interpreter.statements import Statements

RANKED = {"ternary", "range", "optional"}
"""The kinds of match for which a table prefers entries by priority."""


@dataclass(frozen=True, eq=False)
class Entry:
    """An entry of a table. matches: a predicate for each key. rank: the matching entry with the
    largest rank is chosen, and the first of those with equal ranks. arguments: arguments of the
    action that `data` does not contain."""

    matches: Sequence[Callable[[Any], bool]]
    rank: int
    action: ast.ActionDeclaration
    arguments: Sequence[BoundArgument]
    data: Mapping[ast.Declaration, Any] = field(default_factory=dict)


class Tables:
    """Applies tables. installed, defaults: the entries and default actions that a controller has
    set, by the table's full name. A table has either a controller's entries or the program's, not
    both."""

    def __init__(self, context: Context, expressions: Expressions, statements: Statements) -> None:
        self.context = context
        self.expressions = expressions
        self.statements = statements
        self.program = context.program
        self.installed: dict[str, list[Entry]] = {}
        self.defaults: dict[str, Entry] = {}
        context.calls[CallKind.TABLE_APPLY] = self._apply
        self._no_action = next(
            each
            for each in context.program.tree.declarations
            if isinstance(each, ast.ActionDeclaration) and each.name == "NoAction"
        )

    def _apply(self, call: ast.Call, info: CallInfo) -> dict[str, Any]:
        """Applies a table and returns the members of the result: hit, miss and action_run."""
        table = info.target
        assert isinstance(table, ast.TableDeclaration)
        keys = [self.expressions.value(key.expression) for key in table.keys]
        entry = self._lookup(table, keys) if keys else None
        if entry is not None:
            action, arguments = entry.action, entry.arguments
            self.statements.run_action(action, arguments, entry.data)
        else:
            action = self._default(table)
        return {"hit": entry is not None, "miss": entry is None, "action_run": action}

    def _default(self, table: ast.TableDeclaration) -> ast.ActionDeclaration:
        """Executes the table's default action and returns it. The action is NoAction if the table
        names none."""
        if given := self.defaults.get(self.context.instance.name_of(table)):
            self.statements.run_action(given.action, given.arguments, given.data)
            return given.action
        chosen = table.default_action
        if chosen is None:
            return self._no_action
        action = self._action(chosen)
        self.statements.run_action(action, self.program.actions[chosen])
        return action

    def _action(self, reference: ast.ActionRef) -> ast.ActionDeclaration:
        action = self.program.decl_of[reference]
        assert isinstance(action, ast.ActionDeclaration)
        return action

    def _lookup(self, table: ast.TableDeclaration, keys: Sequence[Any]) -> Entry | None:
        best: Entry | None = None
        for entry in self._entries(table):
            hits = (hits(key) for hits, key in zip(entry.matches, keys, strict=True))
            if all(hits) and (best is None or entry.rank > best.rank):
                best = entry
        return best

    def _entries(self, table: ast.TableDeclaration) -> list[Entry]:
        """Returns the entries in their order, with the ranks that their match kinds prescribe
        (P4_16 section 14.2.1.4)."""
        if installed := self.installed.get(self.context.instance.name_of(table)):
            return installed
        kinds = [key.match_kind.name for key in table.keys]
        largest_wins = self._largest_wins(table)
        found = []
        for node in table.entries:
            sets = keysets(node.keyset, len(kinds))
            rank = 0
            if RANKED & set(kinds):
                priority = 0 if node.priority is None else self.expressions.number(node.priority)
                rank = priority if largest_wins else -priority
            elif "lpm" in kinds:
                rank = self._prefix_bits(sets[kinds.index("lpm")])
            matches = [self.predicate(each) for each in sets]
            action = self._action(node.action)
            found.append(Entry(matches, rank, action, self.program.actions[node.action]))
        return found

    def _largest_wins(self, table: ast.TableDeclaration) -> bool:
        chosen = table.property("largest_priority_wins")
        return chosen is None or bool(self.expressions.value(chosen.value))

    def _prefix_bits(self, keyset: ast.Expression) -> int:
        """Returns the prefix length of an lpm entry."""
        if isinstance(keyset, ast.Mask):
            return self.expressions.number(keyset.mask).bit_count()
        if isinstance(keyset, ast.DefaultKeyset):
            return 0
        kind = self.expressions.type(keyset)
        assert isinstance(kind, types.Bits)
        return kind.width

    def predicate(self, keyset: ast.Expression) -> Callable[[Any], bool]:
        """Returns a function that tests whether a value is in a set of keys (P4_16 section
        13.6)."""
        if isinstance(keyset, ast.DefaultKeyset):
            return lambda key: True
        if isinstance(keyset, ast.Mask):
            value = self.expressions.number(keyset.value)
            mask = self.expressions.number(keyset.mask)
            return lambda key: key & mask == value & mask
        if isinstance(keyset, ast.Range):
            low = self.expressions.number(keyset.low)
            high = self.expressions.number(keyset.high)
            return lambda key: low <= key <= high
        if isinstance(self.program.decl_of.get(keyset), ast.ValueSet):
            return lambda key: False  # no controller has put a value in
        wanted = self.expressions.value(keyset)
        return lambda key: bool(key == wanted)


def keysets(keyset: ast.Expression, count: int) -> Sequence[ast.Expression]:
    """Returns one keyset for each key of a table. A single `_` stands for all keys."""
    if isinstance(keyset, ast.ListExpression):
        return keyset.elements
    return [keyset] * count
