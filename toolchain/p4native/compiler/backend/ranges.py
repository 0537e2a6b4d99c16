"""Computes the lowest and the highest value that an expression can have from the ranges of its
operands."""

from __future__ import annotations

from collections.abc import Callable

# None: no bound known.
Range = tuple[int | None, int | None]
UNBOUNDED: Range = (None, None)
MAX_SHIFT_BITS = 1 << 16


def width_range(width: int, signed: bool) -> Range:
    half = 1 << (width - 1) if width else 0
    return (-half, half - 1) if signed else (0, (1 << width) - 1)


def op_range(op: str, left: Range, right: Range) -> Range:
    """Returns the range of `left op right`. For a unary operator, the caller gives (0, 0) as
    `left`. Returns (None, None) if no bounds are known, as for operators whose result is a
    boolean."""
    rule = _RULES.get(op)
    return rule(left, right) if rule else UNBOUNDED


def _add(left: Range, right: Range) -> Range:
    low = None if left[0] is None or right[0] is None else left[0] + right[0]
    high = None if left[1] is None or right[1] is None else left[1] + right[1]
    return (low, high)


def _subtract(left: Range, right: Range) -> Range:
    low = None if left[0] is None or right[1] is None else left[0] - right[1]
    high = None if left[1] is None or right[0] is None else left[1] - right[0]
    return (low, high)


def _natural(bounds: Range) -> bool:
    return bounds[0] is not None and bounds[0] >= 0


def _multiply(left: Range, right: Range) -> Range:
    if not (_natural(left) and _natural(right)):
        return UNBOUNDED
    high = None if left[1] is None or right[1] is None else left[1] * right[1]
    return (0, high)


def _and(left: Range, right: Range) -> Range:
    highs = [b[1] for b in (left, right) if _natural(b) and b[1] is not None]
    return (0, min(highs)) if highs else UNBOUNDED


def _or(left: Range, right: Range) -> Range:
    if not (_natural(left) and _natural(right)) or left[1] is None or right[1] is None:
        return UNBOUNDED
    return (0, (1 << max(left[1].bit_length(), right[1].bit_length())) - 1)


def _complement(_left: Range, right: Range) -> Range:
    return (
        None if right[1] is None else -right[1] - 1,
        None if right[0] is None else -right[0] - 1,
    )


def _shift_left(left: Range, right: Range) -> Range:
    if not _natural(left) or left[1] is None or right[1] is None or right[1] > MAX_SHIFT_BITS:
        return UNBOUNDED
    return (0, left[1] << right[1])


def _shift_right(left: Range, right: Range) -> Range:
    if not _natural(left) or left[1] is None:
        return left
    return (0, left[1] >> min(right[0] or 0, MAX_SHIFT_BITS))


def _divide(left: Range, _right: Range) -> Range:
    return (0, left[1]) if _natural(left) else UNBOUNDED


def _modulo(left: Range, right: Range) -> Range:
    if not _natural(left):
        return UNBOUNDED
    return (0, left[1]) if right[1] is None else (0, max(0, right[1] - 1))


def _choice(left: Range, right: Range) -> Range:
    low = None if left[0] is None or right[0] is None else min(left[0], right[0])
    high = None if left[1] is None or right[1] is None else max(left[1], right[1])
    return (low, high)


def _sized(signed: bool) -> Callable[[Range, Range], Range]:
    """Returns the rule for two_comp_mod and similar operators, whose right operand is a width."""

    def bounds(_left: Range, right: Range) -> Range:
        width = right[0]
        return UNBOUNDED if width is None or width != right[1] else width_range(width, signed)

    return bounds


_RULES: dict[str, Callable[[Range, Range], Range]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "&": _and,
    "|": _or,
    "^": _or,
    "~": _complement,
    "<<": _shift_left,
    ">>": _shift_right,
    "/": _divide,
    "%": _modulo,
    "?": _choice,
    "two_comp_mod": _sized(True),
    "sat_cast": _sized(True),
    "usat_cast": _sized(False),
    "b2d": lambda _left, _right: (0, 1),
}
