"""Checks unary and binary operators, conditionals, casts and slices, and computes their types and
constant values."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.coerce import Coercion
from p4native.compiler.check.context import Context
from p4native.compiler.check.hints import of_operands
from p4native.compiler.check.typerefs import TypeResolver
from p4native.compiler.fold import FoldError, binary, cast, slice_bits, unary
from p4native.compiler.typed import Value

_ARITHMETIC = frozenset({"+", "-", "*"})
_SATURATING = frozenset({"|+|", "|-|"})
_BITWISE = frozenset({"&", "|", "^"})
_ORDER = frozenset({"<", ">", "<=", ">="})
_NOT_COMPARABLE = (
    types.Extern,
    types.Block,
    types.Package,
    types.Table,
    types.Action,
    types.Function,
    types.Overloads,
    types.TypeName,
    types.Void,
    types.String,
    types.MatchKind,
    types.Set,
    types.State,
    types.ApplyResult,
    types.ActionRun,
)


class OperatorChecker:
    """The part that checks unary and binary operators, conditionals, casts and slices."""

    def __init__(self, context: Context, resolver: TypeResolver, coercion: Coercion) -> None:
        self.context = context
        self.resolver = resolver
        self.coercion = coercion

    # ---- unary

    def check_unary(self, node: ast.Unary, expected: types.Type | None) -> types.Type:
        type_ = self.context.check(node.operand, expected)
        if isinstance(type_, types.Unknown):
            return type_
        if isinstance(type_, types.SerializableEnum) and node.operator != "!":
            self.coercion.coerce(node.operand, type_.underlying, "the operand")
            type_ = type_.underlying
        if not _unary_fits(node.operator, type_):
            hint = "give the number a width" if isinstance(type_, types.Integer) else ""
            if node.operator == "!" and isinstance(type_, types.Bits):
                hint = "write ... == 0; all bits are inverted by ~"
            return self.context.error(
                node, f"operator {node.operator} is not defined on {type_}", hint
            )
        value = self.context.program.const_value.get(node.operand)
        if value is not None:
            self.context.set_constant(node, unary(node.operator, value, type_))
        negative = node.operator == "-" and isinstance(value, int) and value > 0
        if negative and isinstance(type_, types.Bits) and not type_.signed:
            wrapped = self.context.program.const_value[node]
            self.context.warn(
                node, "mismatch", f"-{value} does not fit {type_}; it becomes {wrapped}"
            )
        return type_

    # ---- binary

    def check_binary(self, node: ast.Binary, expected: types.Type | None) -> types.Type:
        operator = node.operator
        operand_hint = expected if operator in PASS_DOWN else None
        left = self.context.check(node.left, operand_hint)
        right = self.context.check(
            node.right, None if operator in ("<<", ">>", "++") else operand_hint
        )
        if isinstance(left, types.Unknown) or isinstance(right, types.Unknown):
            return types.BOOLEAN if operator in _TO_BOOLEAN else types.UNKNOWN
        if operator in ("&&", "||"):
            result = self._logical(node)
        elif operator in ("<<", ">>"):
            result = self._shift(node)
        elif operator == "++":
            result = self._concatenation(node)
        elif operator in ("==", "!="):
            result = self._equality(node)
        else:
            result = self._arithmetic(node)
        if not isinstance(result, types.Unknown):
            self._fold_binary(node)
        return result

    def _fold_binary(self, node: ast.Binary) -> None:
        left = self.context.program.const_value.get(node.left)
        right = self.context.program.const_value.get(node.right)
        if left is None or right is None:
            self._check_divisor(node)
            return
        left_type, right_type = (
            self.context.program.type_of[node.left],
            self.context.program.type_of[node.right],
        )
        try:
            self.context.set_constant(
                node, binary(node.operator, left, right, left_type, right_type)
            )
        except FoldError as problem:
            self.context.error(node, str(problem))

    def _check_divisor(self, node: ast.Binary) -> None:
        divisor = self.context.program.const_value.get(node.right)
        if node.operator in ("/", "%") and divisor == 0:
            self.context.error(
                node, "division by zero" if node.operator == "/" else "modulo by zero"
            )

    def _logical(self, node: ast.Binary) -> types.Type:
        for operand in (node.left, node.right):
            type_ = self.context.program.type_of[operand]
            if not isinstance(type_, types.Boolean):
                hint = "compare it: ... != 0" if isinstance(type_, types.Bits) else ""
                self.context.error(
                    operand, f"operator {node.operator} needs bool, not {type_}", hint
                )
        return types.BOOLEAN

    def enum_to_bits(self, operand: ast.Expression) -> types.Type:
        """Returns the operand's type. A serializable enum is first converted to its underlying
        type."""
        type_ = self.context.program.type_of[operand]
        if isinstance(type_, types.SerializableEnum):
            self.coercion.coerce(operand, type_.underlying, "the operand")
            return type_.underlying
        return type_

    def _shift(self, node: ast.Binary) -> types.Type:
        left, right = self.enum_to_bits(node.left), self.enum_to_bits(node.right)
        if not isinstance(left, (types.Bits, types.Integer)):
            return self.context.error(
                node.left, f"operator {node.operator} is not defined on {left}"
            )
        if not isinstance(right, (types.Bits, types.Integer)):
            return self.context.error(node.right, f"a shift's amount must be a number, not {right}")
        amount = self.context.program.const_value.get(node.right)
        if isinstance(right, types.Bits) and right.signed and amount is None:
            return self.context.error(node.right, f"a shift's amount must be unsigned, not {right}")
        if isinstance(amount, int) and amount < 0:
            return self.context.error(node.right, f"shift by a negative number ({amount})")
        if isinstance(left, types.Integer) and not self.context.known(node.right):
            return self.context.error(
                node.left, "a number without width is shifted by a variable", "write 8w1, 32w1, ..."
            )
        if isinstance(left, types.Bits) and isinstance(amount, int) and amount >= left.width:
            self.context.warn(
                node, "overflow", f"shift of {left} by {amount} leaves nothing of its value"
            )
        return left

    def _concatenation(self, node: ast.Binary) -> types.Type:
        left, right = self.enum_to_bits(node.left), self.enum_to_bits(node.right)
        if isinstance(left, types.String) and isinstance(right, types.String):
            return types.STRING
        for operand, type_ in ((node.left, left), (node.right, right)):
            if isinstance(type_, types.Integer):
                return self.context.error(
                    operand, "++ needs operands with a width", "write 8w1, 32w1, ..."
                )
            if not isinstance(type_, types.Bits):
                return self.context.error(operand, f"operator ++ is not defined on {type_}")
        assert isinstance(left, types.Bits) and isinstance(right, types.Bits)
        width = left.width + right.width
        if width > 2048 * 2:
            return self.context.error(
                node, f"concatenation of {width} bits; at most 4096 are allowed"
            )
        return types.Bits(width, left.signed)

    def _equality(self, node: ast.Binary) -> types.Type:
        left, right = (
            self.context.program.type_of[node.left],
            self.context.program.type_of[node.right],
        )
        if left != right and not self._unify_operands(node, left, right):
            return types.UNKNOWN
        common = self.context.program.type_of[node.left]
        problem = _not_comparable(common)
        if problem:
            self.context.error(node, f"{problem} cannot be compared by {node.operator}")
        return types.BOOLEAN

    def _unify_operands(self, node: ast.Binary, left: types.Type, right: types.Type) -> bool:
        """Converts one operand to the other's type, in whichever direction is allowed."""
        if _yields(left, right):
            return self.coercion.coerce(node.left, right, "the right operand")
        if _yields(right, left):
            return self.coercion.coerce(node.right, left, "the left operand")
        left, right = self.enum_to_bits(node.left), self.enum_to_bits(node.right)
        if left == right:
            return True
        if _yields(left, right) or _yields(right, left):
            return self._unify_operands(node, left, right)
        if isinstance(left, types.Tuple) and isinstance(right, types.Tuple):
            return self._unify_lists(node, left, right)
        problem = f"operator {node.operator} needs operands of one type, not {left} and {right}"
        self.context.error(node, problem, of_operands(node, left, right))
        return False

    def _unify_lists(self, node: ast.Binary, left: types.Tuple, right: types.Tuple) -> bool:
        for expression, other in ((node.left, right), (node.right, left)):
            if isinstance(expression, ast.ListExpression):
                return self.coercion.coerce(expression, other, "the other operand")
        problem = f"operator {node.operator} needs operands of one type, not {left} and {right}"
        self.context.error(node, problem, of_operands(node, left, right))
        return False

    def _arithmetic(self, node: ast.Binary) -> types.Type:
        operator = node.operator
        left, right = self.enum_to_bits(node.left), self.enum_to_bits(node.right)
        for operand, type_ in ((node.left, left), (node.right, right)):
            problem = _operand_problem(operator, type_)
            if problem:
                return self.context.error(operand, problem)
        if operator in ("/", "%"):
            for operand in (node.left, node.right):
                value = self.context.program.const_value.get(operand)
                if isinstance(value, int) and value < 0:
                    problem = f"operator {operator} is not defined on negative numbers"
                    return self.context.error(operand, problem)
        if left != right and not self._unify_operands(node, left, right):
            return types.UNKNOWN
        common = self.context.program.type_of[node.left]
        if isinstance(common, types.SerializableEnum):
            common = common.underlying
        if isinstance(common, types.Integer) and operator in _SATURATING:
            return self.context.error(
                node, f"operator {operator} is not defined on numbers without width"
            )
        return types.BOOLEAN if operator in _ORDER else common

    # ---- conditional

    def check_conditional(self, node: ast.Conditional, expected: types.Type | None) -> types.Type:
        condition = self.context.check(node.condition, types.BOOLEAN)
        then = self.context.check(node.then, expected)
        otherwise = self.context.check(node.otherwise, expected)
        if not isinstance(condition, (types.Boolean, types.Unknown)):
            self.context.error(node.condition, f"the condition of ?: must be bool, not {condition}")
        if isinstance(then, types.Unknown) or isinstance(otherwise, types.Unknown):
            return types.UNKNOWN
        self._chained(node, otherwise)
        result = self._branches(node, then, otherwise, expected)
        if not isinstance(result, types.Unknown):
            self._fold_conditional(node)
        return result

    def _chained(self, node: ast.Conditional, otherwise: types.Type) -> None:
        """Warns of `a ? b : c ? d : e`, which p4c reads as `(a ? b : c) ? d : e`. p4c refuses it
        where `a ? b : c` is not a condition."""
        inner = node.otherwise
        if isinstance(inner, ast.Conditional) and not inner.parenthesized:
            does = "groups them differently"
            if not isinstance(otherwise, types.Boolean):
                does = "takes the one before for its condition, and refuses that"
            message = f"this ?: is the last operand of the one before; p4c {does}"
            self.context.warn(inner, "ordering", message, "write parentheses")

    def _branches(
        self,
        node: ast.Conditional,
        then: types.Type,
        otherwise: types.Type,
        expected: types.Type | None,
    ) -> types.Type:
        if then != otherwise:
            if _yields(then, otherwise):
                fine = self.coercion.coerce(node.then, otherwise, "the other branch of ?:")
            elif _yields(otherwise, then):
                fine = self.coercion.coerce(node.otherwise, then, "the other branch of ?:")
            else:
                return self.context.error(
                    node, f"the branches of ?: have types {then} and {otherwise}"
                )
            if not fine:
                return types.UNKNOWN
        result = self.context.program.type_of[node.then]
        if isinstance(result, types.Integer) and not self.context.known(node.condition):
            return self._widthless_branches(node, expected)
        if isinstance(result, _NOT_COMPARABLE) and not isinstance(result, types.String):
            return self.context.error(node, f"?: cannot choose between values of type {result}")
        return result

    def _widthless_branches(self, node: ast.Conditional, expected: types.Type | None) -> types.Type:
        return self.context.error(
            node,
            "both branches of ?: are numbers without width, chosen at run time",
            "give one of them a width: 8w1, 32w1, ...",
        )

    def _fold_conditional(self, node: ast.Conditional) -> None:
        condition = self.context.program.const_value.get(node.condition)
        if condition is None:
            return
        value = self.context.program.const_value.get(node.then if condition else node.otherwise)
        if value is not None:
            self.context.set_constant(node, value)

    # ---- casts

    def check_cast(self, node: ast.Cast, expected: types.Type | None) -> types.Type:
        target = self.resolver.resolve(node.type_ref)
        source = self.context.check(node.operand, target)
        if isinstance(target, types.Unknown) or isinstance(source, types.Unknown):
            return target
        if _structural(target):
            return (
                target if self.coercion.coerce(node.operand, target, "the cast") else types.UNKNOWN
            )
        if not _cast_allowed(source, target, self.context.program.const_value.get(node.operand)):
            return self.context.error(
                node, f"no cast from {source} to {target}", _cast_hint(source, target)
            )
        self._fold_cast(node, target)
        return target

    def _fold_cast(self, node: ast.Cast, target: types.Type) -> None:
        value = self.context.program.const_value.get(node.operand)
        if value is None:
            return
        converted = cast(value, target, self.context.program.enum_values)
        if converted is None:
            return
        self.context.set_constant(node, converted)
        if isinstance(target, types.SerializableEnum) and isinstance(converted, int):
            self.context.warn(node, "mismatch", f"no member of {target} has the value {converted}")

    # ---- slices

    def check_slice(self, node: ast.Slice, expected: types.Type | None) -> types.Type:
        base = self.context.check(node.base)
        high = self.resolver.constant_integer(node.high, "a slice's upper bit")
        low = self.resolver.constant_integer(node.low, "a slice's lower bit")
        if isinstance(base, types.SerializableEnum):
            base = self.enum_to_bits(node.base)
        if isinstance(base, types.Unknown) or high is None or low is None:
            return types.UNKNOWN
        if not isinstance(base, (types.Bits, types.Integer)):
            return self.context.error(node, f"{base} has no bits to slice")
        if low < 0 or high < 0:
            bad = node.low if low < 0 else node.high
            return self.context.error(bad, f"bit {min(low, high)} of a slice is negative")
        if low > high:
            return self.context.error(node, f"a slice is [high:low], but {high} < {low}")
        if isinstance(base, types.Bits) and high >= base.width:
            return self.context.error(node.high, f"bit {high} is outside of {base}")
        value = self.context.program.const_value.get(node.base)
        if isinstance(value, int):
            self.context.set_constant(node, slice_bits(value, high, low))
        return types.Bits(high - low + 1)

    def check_plus_slice(self, node: ast.PlusSlice, expected: types.Type | None) -> types.Type:
        base = self.context.check(node.base)
        start = self.context.check(node.start)
        width = self.resolver.constant_integer(node.width, "a slice's width")
        if width is None or isinstance(base, types.Unknown) or isinstance(start, types.Unknown):
            return types.UNKNOWN
        if not isinstance(base, types.Bits):
            return self.context.error(node, f"{base} has no bits to slice")
        if not isinstance(self.enum_to_bits(node.start), (types.Bits, types.Integer)):
            return self.context.error(
                node.start, f"a slice's lower bit must be a number, not {start}"
            )
        if isinstance(start, types.Bits) and start.signed:
            return self.context.error(node.start, "a slice's lower bit must be unsigned")
        low = self.context.program.const_value.get(node.start)
        if width < 1 or (isinstance(low, int) and not 0 <= low <= base.width - width):
            return self.context.error(node, f"the slice is outside of {base}")
        value = self.context.program.const_value.get(node.base)
        if isinstance(value, int) and isinstance(low, int):
            self.context.set_constant(node, slice_bits(value, low + width - 1, low))
        return types.Bits(width)


PASS_DOWN = _ARITHMETIC | _SATURATING | _BITWISE | {"/", "%", "<<", ">>"}
_TO_BOOLEAN = _ORDER | {"==", "!=", "&&", "||"}


def _unary_fits(operator: str, type_: types.Type) -> bool:
    if operator == "!":
        return isinstance(type_, types.Boolean)
    if operator == "~":
        return isinstance(type_, types.Bits)
    return isinstance(type_, (types.Bits, types.Integer))


def _operand_problem(operator: str, type_: types.Type) -> str:
    if not isinstance(type_, (types.Bits, types.Integer)):
        return f"operator {operator} is not defined on {type_}"
    if operator in ("/", "%") and isinstance(type_, types.Bits) and type_.signed:
        return f"operator {operator} is not defined on signed numbers ({type_})"
    return ""


def _yields(source: types.Type, target: types.Type) -> bool:
    """Whether an operand of type `source` is converted to the type `target` of the other
    operand."""
    if isinstance(source, types.Integer):
        return isinstance(target, types.Bits)
    if isinstance(source, types.SerializableEnum):
        return source.underlying == target
    if isinstance(source, types.Tuple):
        return isinstance(target, (types.StructLike, types.Stack))
    if isinstance(source, types.StructLiteral):
        return isinstance(target, types.StructLike)
    if isinstance(source, types.InvalidLiteral):
        return isinstance(target, (types.Header, types.HeaderUnion))
    return isinstance(source, types.DefaultLiteral)


def _not_comparable(type_: types.Type) -> str:
    if isinstance(type_, _NOT_COMPARABLE):
        return f"values of type {type_}"
    if isinstance(type_, types.StructLiteral):
        return "two lists of members"
    if isinstance(type_, types.TypeVariable):
        return f"values of the unknown type {type_}"
    if isinstance(type_, types.StructLike):
        return next((p for f in type_.fields if (p := _not_comparable(f.type))), "")
    return ""


def _structural(target: types.Type) -> bool:
    return isinstance(target, (types.StructLike, types.Stack, types.Tuple, types.List))


def _scalar(type_: types.Type) -> types.Type:
    """Returns the type below those layers of `type_` that a cast may add or remove."""
    while isinstance(type_, (types.NewType, types.SerializableEnum)):
        type_ = type_.underlying
    return type_


def _cast_allowed(source: types.Type, target: types.Type, value: Value | None) -> bool:
    if source == target:
        return True
    inner, outer = _scalar(source), _scalar(target)
    wrapped = inner is not source or outer is not target
    if wrapped and inner == outer:
        return True
    if isinstance(source, types.NewType) or isinstance(target, types.NewType):
        return isinstance(inner, types.Integer) and isinstance(outer, types.Bits)
    if isinstance(inner, types.Integer):
        boolean = isinstance(outer, types.Boolean) and value in (0, 1)
        return boolean or isinstance(outer, (types.Bits, types.Integer))
    if isinstance(inner, types.Boolean):
        return outer == types.Bits(1)
    if not isinstance(inner, types.Bits):
        return False
    if isinstance(outer, types.Boolean):
        return inner == types.Bits(1)
    if isinstance(outer, types.Integer):
        return True
    if not isinstance(outer, types.Bits):
        return False
    return inner.signed == outer.signed or inner.width == outer.width


def _cast_hint(source: types.Type, target: types.Type) -> str:
    inner, outer = _scalar(source), _scalar(target)
    if isinstance(inner, types.Bits) and isinstance(outer, types.Bits):
        middle = types.Bits(outer.width, inner.signed)
        return f"change width and sign in two steps: ({target})({middle})(...)"
    if isinstance(outer, types.Boolean) and isinstance(inner, types.Bits):
        return "compare it: ... != 0"
    return ""
