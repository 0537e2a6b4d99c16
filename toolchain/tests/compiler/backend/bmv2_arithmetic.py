"""BMv2's unbounded integer expressions, evaluated: the independent reference of these tests."""

from __future__ import annotations

from p4native.compiler.backend import ir

OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


def evaluate(expr: ir.Expr, fields: dict[str, int]) -> int | bool:
    """fields: field name -> value as BMv2 holds it."""
    if isinstance(expr, ir.Const):
        return expr.value
    if isinstance(expr, ir.BoolConstant):
        return expr.value
    if isinstance(expr, ir.FieldRef):
        return fields[expr.field]
    assert isinstance(expr, ir.Op), expr
    if expr.op == "?":
        assert expr.condition is not None and expr.left is not None
        chosen = expr.left if evaluate(expr.condition, fields) else expr.right
        return evaluate(chosen, fields)
    right = evaluate(expr.right, fields)
    if expr.left is None:
        return {
            "~": lambda: ~right,
            "not": lambda: not right,
            "d2b": lambda: right != 0,
            "b2d": lambda: int(right),
        }[expr.op]()
    left = evaluate(expr.left, fields)
    if expr.op in ("two_comp_mod", "sat_cast", "usat_cast"):
        return resize(expr.op, left, right)
    return OPERATORS[expr.op](left, right)


def resize(op: str, value: int, width: int) -> int:
    half = 1 << (width - 1)
    if op == "two_comp_mod":
        return (value + half) % (1 << width) - half
    low, high = (-half, half - 1) if op == "sat_cast" else (0, (1 << width) - 1)
    return max(low, min(high, value))
