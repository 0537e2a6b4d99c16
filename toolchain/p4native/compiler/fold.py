"""Computes with compile-time values, as P4_16 defines it for each type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from p4native.compiler import ast, types
from p4native.compiler.typed import TypedProgram, Value

Constants = Mapping[ast.Declaration, Value]

MAX_SHIFT_BITS = 1 << 14
MAX_INTEGER_BITS = 1 << 17


class FoldError(Exception):
    """Raised for an operation that has no result. The message says why."""


def wrap(value: int, target: types.Type) -> int:
    """Returns the value modulo the range of a type, or the value itself for a type without a
    width."""
    if not isinstance(target, types.Bits):
        return value
    if target.width == 0:
        return 0
    low = value & ((1 << target.width) - 1)
    if target.signed and low >> (target.width - 1):
        return low - (1 << target.width)
    return low


def fits(value: int, target: types.Bits) -> bool:
    return wrap(value, target) == value


def limits(target: types.Bits) -> tuple[int, int]:
    """Returns the smallest and the largest value of a type."""
    if target.signed:
        return -(1 << (target.width - 1)), (1 << (target.width - 1)) - 1
    return 0, (1 << target.width) - 1


def unary(operator: str, value: Value, result: types.Type) -> Value:
    if operator == "!":
        return not value
    assert isinstance(value, int)
    number = {"-": lambda v: -v, "~": lambda v: ~v, "+": lambda v: v}[operator](value)
    return wrap(number, result)


def binary(
    operator: str, left: Value, right: Value, left_type: types.Type, right_type: types.Type
) -> Value:
    """Returns the value of `left operator right`. Both must already have the types that the
    operator needs."""
    if operator in ("==", "!="):
        return (left == right) == (operator == "==")
    if operator in ("&&", "||"):
        return (left and right) if operator == "&&" else (left or right)
    if operator == "++":
        return _concatenate(left, right, left_type, right_type)
    assert isinstance(left, int) and isinstance(right, int)
    if operator in _COMPARISONS:
        return _COMPARISONS[operator](left, right)
    if operator in ("<<", ">>"):
        return _shift(operator, left, right, left_type)
    if operator in ("|+|", "|-|"):
        return _saturating(operator, left, right, left_type)
    if operator in ("/", "%"):
        return _divide(operator, left, right)
    result = _ARITHMETIC[operator](left, right)
    if result.bit_length() > MAX_INTEGER_BITS:
        raise FoldError(f"constant of more than {MAX_INTEGER_BITS} bits")
    return wrap(result, left_type)


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


def _concatenate(left: Value, right: Value, left_type: types.Type, right_type: types.Type) -> Value:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    assert isinstance(left, int) and isinstance(right, int)
    assert isinstance(left_type, types.Bits) and isinstance(right_type, types.Bits)
    width = left_type.width + right_type.width
    low = wrap(right, types.Bits(right_type.width))
    return wrap((left << right_type.width) | low, types.Bits(width, left_type.signed))


def _shift(operator: str, left: int, right: int, left_type: types.Type) -> int:
    if right < 0:
        raise FoldError(f"shift by a negative number ({right})")
    if isinstance(left_type, types.Bits):
        right = min(right, left_type.width)
    elif operator == "<<" and right > MAX_SHIFT_BITS:
        raise FoldError(f"shift by more than {MAX_SHIFT_BITS} bits")
    return wrap(left << right if operator == "<<" else left >> right, left_type)


def _saturating(operator: str, left: int, right: int, left_type: types.Type) -> int:
    assert isinstance(left_type, types.Bits)
    low, high = limits(left_type)
    return max(low, min(high, left + right if operator == "|+|" else left - right))


def _divide(operator: str, left: int, right: int) -> int:
    name = "division" if operator == "/" else "modulo"
    if right == 0:
        raise FoldError(f"{name} by zero")
    if left < 0 or right < 0:
        raise FoldError(f"{name} of negative numbers is not defined")
    return left // right if operator == "/" else left % right


def slice_bits(value: int, high: int, low: int) -> int:
    return (value >> low) & ((1 << (high - low + 1)) - 1)


def cast(
    value: Value, target: types.Type, enum_values: Mapping[ast.EnumMember, int]
) -> Value | None:
    """Returns the value converted to a type, or None if this is not a conversion between
    scalars."""
    while isinstance(target, types.NewType):
        target = target.underlying
    if isinstance(target, types.SerializableEnum):
        return _to_enum(value, target, enum_values)
    if isinstance(value, ast.EnumMember):
        if value not in enum_values:
            return value if isinstance(target, (types.Enum, types.Error)) else None
        value = enum_values[value]
    if isinstance(target, types.Boolean):
        return bool(value) if isinstance(value, int) else None
    if isinstance(target, (types.Bits, types.Integer)):
        return wrap(int(value), target) if isinstance(value, int) else None
    return value


def _to_enum(
    value: Value, target: types.SerializableEnum, enum_values: Mapping[ast.EnumMember, int]
) -> Value | None:
    """Returns the enum's member whose number is `value`, or the number itself if no member has
    it."""
    if isinstance(value, ast.EnumMember):
        return value
    if not isinstance(value, int):
        return None
    number = wrap(value, target.underlying)
    members = target.declaration.members
    return next((m for m in members if enum_values.get(m) == number), number)


def evaluate(
    program: TypedProgram, expression: ast.Expression, constants: Constants
) -> Value | None:
    """Returns the compile-time value of a checked expression, or None where it is not known.

    constants: the values of some declarations, such as an instance's constructor parameters in
    Instance.constants.
    """
    known = program.const_value.get(expression)
    if known is not None:
        return known
    handler = _EVALUATORS.get(type(expression))
    try:
        value = handler(program, expression, constants) if handler else None
    except FoldError:
        return None
    target = program.implicit_cast.get(expression)
    if value is None or target is None:
        return value
    return cast(value, target, program.enum_values)


def _name(program: TypedProgram, node: ast.NameExpression, constants: Constants) -> Value | None:
    declaration = program.decl_of.get(node)
    return None if declaration is None else constants.get(declaration)


def _unary(program: TypedProgram, node: ast.Unary, constants: Constants) -> Value | None:
    value = evaluate(program, node.operand, constants)
    return None if value is None else unary(node.operator, value, program.type_of[node])


def _operand_type(program: TypedProgram, node: ast.Expression) -> types.Type:
    return program.implicit_cast.get(node, program.type_of[node])


def _binary(program: TypedProgram, node: ast.Binary, constants: Constants) -> Value | None:
    left = evaluate(program, node.left, constants)
    right = evaluate(program, node.right, constants)
    if left is None or right is None:
        return None
    types_ = _operand_type(program, node.left), _operand_type(program, node.right)
    return binary(node.operator, left, right, *types_)


def _cast(program: TypedProgram, node: ast.Cast, constants: Constants) -> Value | None:
    value = evaluate(program, node.operand, constants)
    return None if value is None else cast(value, program.type_of[node], program.enum_values)


def _conditional(
    program: TypedProgram, node: ast.Conditional, constants: Constants
) -> Value | None:
    condition = evaluate(program, node.condition, constants)
    if condition is None:
        return None
    return evaluate(program, node.then if condition else node.otherwise, constants)


def _slice(program: TypedProgram, node: ast.Slice, constants: Constants) -> Value | None:
    values = [evaluate(program, e, constants) for e in (node.base, node.high, node.low)]
    if not all(isinstance(v, int) for v in values):
        return None
    value, high, low = (v for v in values if isinstance(v, int))
    return slice_bits(value, high, low) if high >= low >= 0 else None


def _member(program: TypedProgram, node: ast.Member, constants: Constants) -> Value | None:
    base = evaluate(program, node.base, constants)
    owner = program.type_of.get(node.base)
    if isinstance(base, tuple) and isinstance(owner, types.StructLike):
        names = [f.name for f in owner.fields]
        return base[names.index(node.member)] if node.member in names else None
    return None


def _index(program: TypedProgram, node: ast.Index, constants: Constants) -> Value | None:
    base = evaluate(program, node.base, constants)
    index = evaluate(program, node.index, constants)
    if isinstance(base, tuple) and isinstance(index, int) and 0 <= index < len(base):
        return base[index]
    return None


def _list(program: TypedProgram, node: ast.ListExpression, constants: Constants) -> Value | None:
    values = [evaluate(program, e, constants) for e in node.elements]
    known = tuple(v for v in values if v is not None)
    return known if len(known) == len(values) and not node.has_dots else None


def _struct(
    program: TypedProgram, node: ast.StructExpression, constants: Constants
) -> Value | None:
    target = program.type_of[node]
    given = {m.name: evaluate(program, m.value, constants) for m in node.members}
    if not isinstance(target, types.StructLike) or node.has_dots:
        return None
    known = tuple(v for f in target.fields if (v := given.get(f.name)) is not None)
    return known if len(known) == len(target.fields) else None


_EVALUATORS: dict[type, Callable[..., Value | None]] = {
    ast.NameExpression: _name,
    ast.Unary: _unary,
    ast.Binary: _binary,
    ast.Cast: _cast,
    ast.Conditional: _conditional,
    ast.Slice: _slice,
    ast.Member: _member,
    ast.Index: _index,
    ast.ListExpression: _list,
    ast.StructExpression: _struct,
}
