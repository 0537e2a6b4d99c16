"""Evaluates expressions, and finds the places (variables or parts of them) to which a program can
assign."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from p4native.compiler import ast, types
from p4native.verification.interpreter import values
from p4native.verification.interpreter.context import Context
from p4native.verification.interpreter.values import (
    Header,
    Record,
    Stack,
    Union,
    UnknownConstruct,
    scalar,
    wrap,
)


@dataclass(frozen=True)
class Place:
    """The place where a value is kept. A place can be read and written, even if the value is only a
    part of a variable."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class Expressions:
    """An evaluator of expressions. Operands are evaluated from left to right (P4_16 section
    8.1)."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.program = context.program
        self._evaluate: dict[type, Callable[[Any], Any]] = {
            ast.IntLiteral: self._constant,
            ast.BoolLiteral: lambda e: e.value,
            ast.StringLiteral: lambda e: e.value,
            ast.NameExpression: self._name,
            ast.Member: self._member,
            ast.Index: self._index,
            ast.Slice: self._slice,
            ast.PlusSlice: self._slice,
            ast.Unary: self._unary,
            ast.Binary: self._binary,
            ast.Cast: self._cast,
            ast.Conditional: self._conditional,
            ast.Call: self.call,
            ast.ListExpression: self._list,
            ast.StructExpression: self._struct,
            ast.InvalidHeader: lambda e: self.context.default(self.program.type_of[e]),
            ast.DefaultInitializer: lambda e: self.context.default(self.program.type_of[e]),
        }

    def value(self, expression: ast.Expression) -> Any:
        """Returns the value of an expression. Later assignments do not change it."""
        return values.copy(self._look(expression))

    def number(self, expression: ast.Expression) -> int:
        """Returns the value of an expression that is a number."""
        found = self._look(expression)
        assert isinstance(found, int)
        return found

    def _look(self, expression: ast.Expression) -> Any:
        """Returns the value itself and not a copy. It may therefore be a part of a variable."""
        evaluate = self._evaluate.get(type(expression))
        if evaluate is None:
            raise UnknownConstruct(
                f"{expression.position}: expressions of kind {type(expression).__name__}"
            )
        return evaluate(expression)

    def type(self, expression: ast.Expression) -> types.Type:
        """Returns the type of an expression. For a serializable enum, it is the enum's underlying
        type."""
        return scalar(self.program.type_of[expression])

    # ---- constants and names

    def _constant(self, expression: ast.Expression) -> Any:
        return self._plain(self.program.const_value[expression])

    def _plain(self, constant: Any) -> Any:
        if isinstance(constant, ast.EnumMember):
            return self.program.enum_values.get(constant, constant)
        if isinstance(constant, tuple):
            return [self._plain(each) for each in constant]
        return constant

    def _name(self, expression: ast.NameExpression) -> Any:
        declaration = self.program.decl_of[expression]
        if declaration in self.context.variables:
            return self.context.variables[declaration]
        if isinstance(declaration, ast.Constant):
            return self._look(declaration.value)
        if declaration in self.context.instance.constants:
            return self._plain(self.context.instance.constants[declaration])
        if isinstance(declaration, (ast.Variable, ast.Parameter)):
            raise AssertionError(f"{expression.position}: {expression.name} has no value yet")
        return self._constant(expression)

    def _member(self, expression: ast.Member) -> Any:
        if expression in self.program.const_value:
            return self._constant(expression)
        base = self._look(expression.base)
        if isinstance(base, Stack):
            return self._of_stack(base, expression)
        if isinstance(base, Union):
            return base.members[expression.member]
        if isinstance(base, dict):  # the result of applying a table
            return base[expression.member]
        assert isinstance(base, (Record, Header))
        return base.fields[expression.member]

    def _of_stack(self, stack: Stack, expression: ast.Member) -> Any:
        if expression.member == "lastIndex":
            return (stack.next - 1) % 2**32
        at = stack.next - (expression.member == "last")
        if not 0 <= at < len(stack.elements):
            raise OutOfBounds(f"{expression.position}: {expression.member}")
        return stack.elements[at]

    def _index(self, expression: ast.Index) -> Any:
        base, at = self._look(expression.base), self.number(expression.index)
        return (base.elements if isinstance(base, Stack) else base)[at]

    # ---- operators

    def _ends(self, expression: ast.Slice | ast.PlusSlice) -> tuple[int, int]:
        """Returns (lowest bit, width) of a slice."""
        if isinstance(expression, ast.PlusSlice):
            return self.number(expression.start), self.number(expression.width)
        low = self.number(expression.low)
        return low, self.number(expression.high) - low + 1

    def _slice(self, expression: ast.Slice | ast.PlusSlice) -> int:
        whole = self.number(expression.base)
        low, width = self._ends(expression)
        return whole >> low & (1 << width) - 1

    def _unary(self, expression: ast.Unary) -> Any:
        operand = self._look(expression.operand)
        if expression.operator == "!":
            return not operand
        number = {"-": -operand, "~": ~operand, "+": operand}[expression.operator]
        return self._wrapped(number, expression)

    def _wrapped(self, number: int, expression: ast.Expression) -> int:
        kind = self.type(expression)
        return wrap(number, kind) if isinstance(kind, types.Bits) else number

    def _binary(self, expression: ast.Binary) -> Any:
        operator = expression.operator
        if operator in ("&&", "||"):
            left = self._look(expression.left)
            return left if left == (operator == "||") else self._look(expression.right)
        left, right = self.value(expression.left), self.value(expression.right)
        if operator in ("==", "!="):
            return values.equal(left, right) == (operator == "==")
        if operator in COMPARISONS:
            return COMPARISONS[operator](left, right)
        if operator == "++":
            width = self.width(expression.right)
            return self._wrapped(left << width | right % (1 << width), expression)
        return self.operate(operator, left, right, self.type(expression))

    def width(self, expression: ast.Expression) -> int:
        """Returns the number of bits of an expression's value."""
        width = types.width_bits(self.type(expression))
        assert width is not None, "only what has a width is matched or concatenated"
        return width

    def as_type(self, number: int, kind: types.Type) -> Any:
        """Returns the value of type `kind` that has the bits of `number`."""
        kind = scalar(kind)
        if isinstance(kind, types.Boolean):
            return bool(number)
        assert isinstance(kind, types.Bits)
        return wrap(number, kind)

    def operate(self, operator: str, left: int, right: int, kind: types.Type) -> int:
        """Returns the result of an arithmetic operator. kind: the type of the result."""
        if not isinstance(kind, types.Bits):
            assert isinstance(kind, types.Integer)
            if operator in ("<<", ">>"):
                return left << right if operator == "<<" else left >> right
            return ARITHMETIC[operator](left, right)
        if operator in ("|+|", "|-|"):
            return values.saturate(left + right if operator == "|+|" else left - right, kind)
        if operator in ("<<", ">>"):
            count = min(right, kind.width)
            return wrap(left << count if operator == "<<" else left >> count, kind)
        return wrap(ARITHMETIC[operator](left, right), kind)

    def _cast(self, expression: ast.Cast) -> Any:
        value, kind = self._look(expression.operand), self.type(expression)
        if isinstance(kind, types.Bits):
            return wrap(int(value), kind)
        return bool(value) if isinstance(kind, types.Boolean) else value

    def _conditional(self, expression: ast.Conditional) -> Any:
        chosen = expression.then if self._look(expression.condition) else expression.otherwise
        return self._look(chosen)

    def _list(self, expression: ast.ListExpression) -> Any:
        kind = self.type(expression)
        elements = [self.value(each) for each in expression.elements]
        if isinstance(kind, (types.Struct, types.Header)):
            return self._made(
                kind, dict(zip((f.name for f in kind.fields), elements, strict=False))
            )
        if isinstance(kind, types.Stack):
            return Stack(kind, elements)
        return elements

    def _struct(self, expression: ast.StructExpression) -> Any:
        kind = self.type(expression)
        assert isinstance(kind, (types.Struct, types.Header))
        return self._made(kind, {each.name: self.value(each.value) for each in expression.members})

    def _made(self, kind: types.Struct | types.Header, given: dict[str, Any]) -> Any:
        made = self.context.default(kind)
        made.fields.update(given)
        if isinstance(made, Header):
            made.valid = True
        return made

    def call(self, expression: ast.Call) -> Any:
        """Executes a call and returns its result."""
        info = self.program.calls[expression]
        if expression in self.program.const_value:
            return self._constant(expression)
        handler = self.context.calls.get(info.kind)
        if handler is None:
            raise UnknownConstruct(f"{expression.position}: calls of kind {info.kind.value}")
        return handler(expression, info)

    # ---- places

    def place_of_stack(self, expression: ast.Expression) -> Stack:
        """Returns the stack itself and not a copy, since a parser changes its `next`."""
        found = self._look(expression)
        assert isinstance(found, Stack)
        return found

    def place(self, expression: ast.Expression) -> Place:
        """Returns the place where the value of an expression is kept. Indices in the expression are
        evaluated only once."""
        if isinstance(expression, ast.NameExpression):
            declaration, variables = self.program.decl_of[expression], self.context.variables
            return Place(
                lambda: variables[declaration],
                lambda value: self._write_name(declaration, value),
            )
        if isinstance(expression, (ast.Slice, ast.PlusSlice)):
            return self._place_of_slice(expression)
        if isinstance(expression, ast.Index):
            base, at = self._look(expression.base), self.number(expression.index)
            if isinstance(base, Stack):
                return self._place_of_part(base.elements[at])
            return Place(lambda: base[at], lambda value: base.__setitem__(at, value))
        assert isinstance(expression, ast.Member)
        return self._place_of_member(expression)

    def _write_name(self, declaration: ast.Declaration, value: Any) -> None:
        old = self.context.variables.get(declaration)
        if isinstance(old, values.COMPOUND):
            values.overwrite(old, value)
        else:
            self.context.variables[declaration] = values.copy(value)

    def _place_of_member(self, expression: ast.Member) -> Place:
        found = self._look(expression)
        if isinstance(found, values.COMPOUND):
            return self._place_of_part(found)
        fields, name = self._look(expression.base).fields, expression.member
        return Place(lambda: fields[name], lambda value: fields.update({name: values.copy(value)}))

    def _place_of_part(self, part: Any) -> Place:
        return Place(lambda: part, lambda value: values.overwrite(part, value))

    def _place_of_slice(self, expression: ast.Slice | ast.PlusSlice) -> Place:
        whole, kind = self.place(expression.base), self.type(expression.base)
        assert isinstance(kind, types.Bits)
        low, width = self._ends(expression)
        hole = (1 << width) - 1 << low

        def write(value: int) -> None:
            whole.write(wrap(whole.read() & ~hole | value << low & hole, kind))

        return Place(lambda: whole.read() >> low & (1 << width) - 1, write)


class OutOfBounds(Exception):
    """Raised for the use of `next` of a full stack, or of `last` of an empty one."""
