"""P4's fixed-width arithmetic on BMv2's unbounded integers.

Every function returns an expression whose value is in the range of the P4 type. A mask or a
`two_comp_mod` is left out where the operands' ranges show that nothing can overflow.
"""

from __future__ import annotations

from p4native.compiler import types
from p4native.compiler.backend import ir
from p4native.compiler.backend.places import is_signed, plain, scalar_width
from p4native.compiler.backend.ranges import MAX_SHIFT_BITS, Range, width_range

TRUE = ir.BoolConstant(True)
FALSE = ir.BoolConstant(False)
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


def mask(width: int) -> int:
    return (1 << width) - 1


def to_signed(value: int, width: int) -> int:
    value &= mask(width)
    return value - (1 << width) if width and value >> (width - 1) else value


def fits(expr: ir.Expr, bounds: Range) -> bool:
    low, high = expr.range
    assert bounds[0] is not None and bounds[1] is not None
    return low is not None and high is not None and low >= bounds[0] and high <= bounds[1]


def constant(value: int, shape: types.Type) -> ir.Const:
    """Returns a value as a constant of a type. The value must be in the type's range already."""
    return ir.Const(value, scalar_width(shape))


def wrap(expr: ir.Expr, width: int, signed: bool = False) -> ir.Expr:
    """Returns the expression modulo 2^width, as a number of that width."""
    if width == 0 or fits(expr, width_range(width, signed)):
        return expr
    if isinstance(expr, ir.Const):
        wrapped = to_signed(expr.value, width) if signed else expr.value & mask(width)
        return ir.Const(wrapped, width)
    if signed:
        return ir.Op("two_comp_mod", expr, ir.Const(width, 8))
    if isinstance(expr, ir.Op) and expr.op == "&" and isinstance(expr.right, ir.Const):
        assert expr.left is not None
        return ir.Op("&", expr.left, ir.Const(expr.right.value & mask(width), width))
    return ir.Op("&", expr, ir.Const(mask(width), width))


def unwrap(expr: ir.Expr, width: int) -> ir.Expr:
    """Returns the expression without its outermost mask, if a store to a field of `width` unsigned
    bits cuts the value in the same way. Otherwise returns it unchanged."""
    if isinstance(expr, ir.Op) and expr.op == "&" and expr.right == ir.Const(mask(width), width):
        assert expr.left is not None
        return expr.left
    return expr


def unsigned(expr: ir.Expr, width: int) -> ir.Expr:
    """Returns the bits of a signed or unsigned number as an unsigned number."""
    return wrap(expr, width)


def as_boolean(expr: ir.Expr) -> ir.Expr:
    """Returns an expression of one bit as a boolean expression."""
    if expr.is_boolean:
        return expr
    if isinstance(expr, ir.Const):
        return ir.BoolConstant(bool(expr.value))
    if isinstance(expr, ir.Op) and expr.op == "b2d":
        return expr.right
    return ir.Op("d2b", None, expr)


def as_data(expr: ir.Expr) -> ir.Expr:
    """Returns a boolean expression as a number of one bit."""
    if not expr.is_boolean:
        return expr
    if isinstance(expr, ir.BoolConstant):
        return ir.Const(int(expr.value), 1)
    if isinstance(expr, ir.Op) and expr.op == "d2b":
        return expr.right
    return ir.Op("b2d", None, expr)


def negate(expr: ir.Expr) -> ir.Expr:
    if isinstance(expr, ir.BoolConstant):
        return ir.BoolConstant(not expr.value)
    if isinstance(expr, ir.Op) and expr.op == "not":
        return expr.right
    return ir.Op("not", None, expr)


def both(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    if isinstance(left, ir.BoolConstant):
        return right if left.value else left
    if right == TRUE:
        return left
    return ir.Op("and", left, right)


def either(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    if isinstance(left, ir.BoolConstant):
        return left if left.value else right
    if right == FALSE:
        return left
    return ir.Op("or", left, right)


def choose(condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
    if isinstance(condition, ir.BoolConstant):
        return then if condition.value else otherwise
    return ir.Op("?", then, otherwise, condition)


def compare(operator: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return ir.BoolConstant(_COMPARE[operator](left.value, right.value))
    if isinstance(left, ir.BoolConstant) and isinstance(right, ir.BoolConstant):
        return ir.BoolConstant(_COMPARE[operator](left.value, right.value))
    return ir.Op(operator, left, right)


_COMPARE = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def binary(operator: str, left: ir.Expr, right: ir.Expr, shape: types.Type) -> ir.Expr:
    """Returns `left operator right`. The operation follows the rules for values of the type `shape`
    (P4_16 section 8)."""
    width, signed = scalar_width(shape), is_signed(shape)
    if operator in ("<<", ">>"):
        return _shift(operator, left, right, width, signed)
    if operator in ("|+|", "|-|"):
        cast = "sat_cast" if signed else "usat_cast"
        return ir.Op(cast, ir.Op(operator[1], left, right), ir.Const(width, 8))
    folded = _fold(operator, left, right)
    if folded is not None:
        return wrap(ir.Const(folded, width), width, signed)
    return wrap(_simplified(operator, left, right), width, signed)


def _fold(operator: str, left: ir.Expr, right: ir.Expr) -> int | None:
    if not (isinstance(left, ir.Const) and isinstance(right, ir.Const)):
        return None
    a, b = left.value, right.value
    if operator in ("/", "%") and b <= 0:
        return None
    return _FOLDS[operator](a, b)


_FOLDS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


def _simplified(operator: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    zero_right = isinstance(right, ir.Const) and right.value == 0
    zero_left = isinstance(left, ir.Const) and left.value == 0
    if zero_right and operator in ("+", "-", "|", "^"):
        return left
    if zero_left and operator in ("+", "|", "^"):
        return right
    return ir.Op(operator, left, right)


def _shift(operator: str, left: ir.Expr, right: ir.Expr, width: int, signed: bool) -> ir.Expr:
    if isinstance(right, ir.Const):
        return _shift_constant(operator, left, right.value, width, signed)
    shifted = wrap(ir.Op(operator, left, right), width, signed)
    high = right.range[1]
    if high is not None and high <= MAX_SHIFT_BITS:
        return shifted
    # BMv2 shifts unbounded integers: a count of 2^32 would ask for half a gigabyte.
    beyond: ir.Expr = ir.Const(0, width)
    if signed and operator == ">>":
        beyond = ir.Op(">>", left, ir.Const(width, 32))
    return choose(ir.Op("<", right, ir.Const(width, 32)), shifted, beyond)


def _shift_constant(operator: str, left: ir.Expr, count: int, width: int, signed: bool) -> ir.Expr:
    if count == 0:
        return left
    count = min(count, width)
    if isinstance(left, ir.Const):
        value = left.value << count if operator == "<<" else left.value >> count
        return wrap(ir.Const(value, width), width, signed)
    if count == width and not (signed and operator == ">>"):
        return ir.Const(0, width)
    return wrap(ir.Op(operator, left, ir.Const(count, 8)), width, signed)


def unary(operator: str, operand: ir.Expr, shape: types.Type) -> ir.Expr:
    width, signed = scalar_width(shape), is_signed(shape)
    if operator == "+":
        return operand
    if isinstance(operand, ir.Const):
        value = -operand.value if operator == "-" else ~operand.value
        return wrap(ir.Const(value, width), width, signed)
    if operator == "-":
        return wrap(ir.Op("-", ir.Const(0, width), operand), width, signed)
    return wrap(ir.Op("~", None, operand), width, signed)


def concatenate(left: ir.Expr, left_bits: int, right: ir.Expr, right_bits: int) -> ir.Expr:
    """Returns `left ++ right` as an unsigned number."""
    high = shift_up(unsigned(left, left_bits), right_bits)
    low = unsigned(right, right_bits)
    if isinstance(high, ir.Const) and isinstance(low, ir.Const):
        return ir.Const(high.value | low.value, left_bits + right_bits)
    return _simplified("|", high, low)


def shift_up(expr: ir.Expr, count: int) -> ir.Expr:
    if count == 0:
        return expr
    if isinstance(expr, ir.Const):
        return ir.Const(expr.value << count, expr.width + count)
    return ir.Op("<<", expr, ir.Const(count, 16))


def slice_bits(expr: ir.Expr, high: int, low: int) -> ir.Expr:
    """Returns `expr[high:low]` as an unsigned number."""
    width = high - low + 1
    if isinstance(expr, ir.Const):
        return ir.Const((expr.value >> low) & mask(width), width)
    shifted = ir.Op(">>", expr, ir.Const(low, 16)) if low else expr
    return wrap(shifted, width)


def replace_bits(whole: ir.Expr, width: int, high: int, low: int, part: ir.Expr) -> ir.Expr:
    """Returns `whole`, an unsigned number of `width` bits, with bits `high` to `low` taken from
    `part`."""
    hole = mask(width) ^ (mask(high - low + 1) << low)
    kept = ir.Op("&", whole, ir.Const(hole, width)) if hole else ir.Const(0, width)
    return _simplified("|", kept, shift_up(part, low))


def convert(expr: ir.Expr, source: types.Type, target: types.Type) -> ir.Expr:
    """Returns the value cast from one scalar type to another (P4_16 section 8.11.1)."""
    start, end = plain(source), plain(target)
    if start == end or isinstance(end, types.Integer):
        return expr
    if isinstance(end, types.Boolean):
        return ir.Op("!=", expr, ir.Const(0, scalar_width(source) or 1))
    if isinstance(start, types.Boolean):
        expr = as_data(expr)
    return wrap(expr, scalar_width(end), is_signed(end))
