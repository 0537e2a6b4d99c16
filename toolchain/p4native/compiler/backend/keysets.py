"""Turns the keysets of a `select` into values with masks. A range becomes as many masked values as
are needed to cover it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from p4native.compiler import ast, types
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.expressions import Expressions
from p4native.compiler.backend.scope import ValueSetSite

MAX_EXPANSION = 1024
Masked = tuple[int, int]


@dataclass
class Choice:
    """One alternative of a keyset: (value, mask) for each key, or the name of a value set."""

    parts: tuple[Masked, ...] = ()
    value_set: str | None = None


def choices_of(
    expressions: Expressions, keyset: ast.Expression, widths: Sequence[int]
) -> Iterator[Choice]:
    """Yields the alternatives for which a keyset stands, in order."""
    if isinstance(keyset, ast.DefaultKeyset):
        yield Choice(tuple((0, 0) for _ in widths))
        return
    declared = expressions.scope.typed.decl_of.get(keyset)
    if isinstance(declared, ast.ValueSet):
        yield Choice(value_set=value_set(expressions, declared))
        return
    elements: Sequence[ast.Expression] = (keyset,)
    if isinstance(keyset, ast.ListExpression):
        elements = keyset.elements
    options = [list(_masked(expressions, e, w)) for e, w in zip(elements, widths, strict=True)]
    count = 1
    for option in options:
        count *= len(option)
    if count > MAX_EXPANSION:
        raise expressions.scope.unsupported(keyset, f"ranges that expand to {count} cases")
    for parts in product(*options):
        yield Choice(parts)


def _masked(expressions: Expressions, keyset: ast.Expression, width: int) -> Iterator[Masked]:
    full = arithmetic.mask(width)
    if isinstance(keyset, ast.DefaultKeyset):
        yield (0, 0)
    elif isinstance(keyset, ast.Mask):
        mask = _number(expressions, keyset.mask, full)
        yield (_number(expressions, keyset.value, full) & mask, mask)
    elif isinstance(keyset, ast.Range):
        low, high = _number(expressions, keyset.low, full), _number(expressions, keyset.high, full)
        yield from range_masks(low, high, width)
    else:
        yield (_number(expressions, keyset, full), full)


def range_masks(low: int, high: int, width: int) -> Iterator[Masked]:
    """Yields the fewest masked values that cover the numbers from `low` to `high`, both
    included."""
    full = arithmetic.mask(width)
    while low <= high:
        size = low & -low or 1 << width
        while low + size - 1 > high:
            size >>= 1
        yield (low, full ^ (size - 1))
        low += size


def _number(expressions: Expressions, expression: ast.Expression, full: int) -> int:
    data = arithmetic.as_data(expressions.value(expression))
    if not isinstance(data, ir.Const):
        raise expressions.scope.unsupported(expression, "a select case that is not constant")
    return data.value & full


def value_set(expressions: Expressions, declared: ast.ValueSet) -> str:
    """Returns the name of a value set. At the first use of the value set, also adds it to the
    program."""
    scope = expressions.scope
    unit = scope.unit
    assert scope.frame.instance is not None
    name = scope.frame.instance.name_of(declared)
    if all(known != name for known, *_ in unit.program.value_sets):
        element = scope.type_at(declared.type_ref)
        width = types.width_bits(element)
        if width is None:
            raise scope.unsupported(declared, f"a value set of {element}")
        size = scope.evaluated(declared.size)
        assert isinstance(size, int)
        unit.program.value_sets.append((name, width, size, declared.position))
        unit.value_sets.append(ValueSetSite(name, declared, element, size))
    return name
