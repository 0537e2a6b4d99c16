"""Compares the entries of a table with each other. Finds entries that can never match, and
priorities out of order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p4native.compiler import ast
from p4native.compiler.check.context import Context
from p4native.compiler.typed import TypedProgram

# with more entries, comparing every pair would take too long
MAX_COMPARED = 2000

# (value, mask); None where the keyset is no such pair known at compile time
Ternary = tuple[int, int] | None


def check_order(context: Context, table: ast.TableDeclaration) -> None:
    """Warns of entries that an earlier one hides, and of priorities that are not in order."""
    if table.entries_constant and len(table.entries) <= MAX_COMPARED:
        _check_covered(context, table)
    elif not table.entries_constant:
        _check_priorities(context, table)


def _check_covered(context: Context, table: ast.TableDeclaration) -> None:
    kinds = [k.match_kind.name for k in table.keys]
    ordered = any(a.name == "priority" for e in table.entries for a in e.annotations)
    if ordered or not set(kinds) & {"ternary", "optional"}:
        return
    rows = [(e, _ternaries(e.keyset, len(kinds), context.program)) for e in table.entries]
    for index, (entry, keys) in enumerate(rows):
        for earlier, wider in rows[:index]:
            if keys and wider and all(map(_covers, wider, keys, kinds)):
                place = earlier.keyset.position
                message = f"this entry never matches: the one at {place} takes all its packets"
                context.warn(entry.keyset, "table-keys", message, "move it up, or remove it")
                break


def _ternaries(keyset: ast.Expression, count: int, program: TypedProgram) -> list[Ternary]:
    """Returns an entry's keys as values with masks. Returns no keys if their number is wrong."""
    parts: Sequence[ast.Expression] = (keyset,)
    if isinstance(keyset, ast.ListExpression):
        parts = keyset.elements
    elif isinstance(keyset, ast.DefaultKeyset):
        parts = (keyset,) * count
    return [_ternary(part, program) for part in parts] if len(parts) == count else []


def _ternary(part: ast.Expression, program: TypedProgram) -> Ternary:
    if isinstance(part, ast.DefaultKeyset):
        return 0, 0
    if isinstance(part, ast.Mask):
        value, mask = (program.const_value.get(x) for x in (part.value, part.mask))
        known = isinstance(value, int) and isinstance(mask, int)
        return (int(value) & int(mask), int(mask)) if known else None  # type: ignore[arg-type]
    value = program.const_value.get(part)
    return (int(value), -1) if isinstance(value, int) else None


def _covers(wider: Ternary, narrower: Ternary, kind: str) -> bool:
    """Whether `wider` matches every value that `narrower` matches, and `narrower` is not a better
    match."""
    if wider is None or narrower is None:
        return False
    if kind == "lpm":
        return wider == narrower
    (value, mask), (other, other_mask) = wider, narrower
    return mask & ~other_mask == 0 and value & mask == other & mask


def _check_priorities(context: Context, table: ast.TableDeclaration) -> None:
    largest_wins = _property(context, table, "largest_priority_wins", 1)
    delta = _property(context, table, "priority_delta", 1) * (-1 if largest_wins else 1)
    seen: dict[int, ast.TableEntry] = {}
    before: tuple[ast.TableEntry, int] | None = None
    in_order = True
    for entry, priority in _priorities(context, table, delta):
        place = entry.keyset.position
        if priority in seen:
            message = f"the entry at {place} has priority {priority} as well: it may match instead"
            _warn(context, table, seen[priority], "duplicate-priorities", message)
        if before is not None and in_order and (priority - before[1]) * delta < 0:
            in_order = False
            message = f"the entry at {place} wins over this one: {priority} against {before[1]}"
            _warn(context, table, before[0], "entries-out-of-priority-order", message)
        seen.setdefault(priority, entry)
        before = entry, priority


def _priorities(
    context: Context, table: ast.TableDeclaration, delta: int
) -> Iterator[tuple[ast.TableEntry, int]]:
    """Yields each entry with its priority. An entry without a written priority continues from the
    entry before (P4_16 section 14.2.1.4). Yields nothing if no entry has a priority."""
    if not any(entry.priority for entry in table.entries):
        return
    priority = 0
    for entry in table.entries:
        given = context.program.const_value.get(entry.priority) if entry.priority else None
        priority = given if isinstance(given, int) else priority + delta
        yield entry, priority


def _property(context: Context, table: ast.TableDeclaration, name: str, default: int) -> int:
    written = table.property(name)
    value = context.program.const_value.get(written.value) if written else None
    return value if isinstance(value, int) else default


def _warn(
    context: Context, table: ast.TableDeclaration, entry: ast.TableEntry, kind: str, message: str
) -> None:
    silenced = [
        getattr(argument, "value", None)
        for annotation in table.entries_annotations
        if annotation.name == "noWarn"
        for argument in annotation.arguments
    ]
    if kind not in silenced:
        context.warn(entry.keyset, kind, message)
