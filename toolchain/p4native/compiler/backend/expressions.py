"""Lowers expressions of P4. L-values and values with members become places, and scalars become BMv2
expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from p4native.compiler import ast, types
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.places import (
    HeaderPlace,
    InvalidPlace,
    LastHeader,
    MovingSlicePlace,
    NextHeader,
    NextUnionMember,
    Place,
    Scalar,
    SelectedPlace,
    SlicePlace,
    StackPlace,
    StructPlace,
    UnionPlace,
    Value,
    WithFields,
    bits_of,
    default_place,
    is_constant,
    is_scalar,
    leaf_count,
    listed_members,
    member_of,
    members_of,
    plain,
    scalar_width,
)
from p4native.compiler.backend.scope import Scope
from p4native.compiler.typed import Value as Known

# An operator is two levels of JSON: BMv2's reader goes no deeper than 1000, our switch's than 300.
MAX_DEPTH = 64

# An index known at run time becomes a tree of comparisons with a leaf for each element.
MAX_ALTERNATIVES = 4096

Made = TypeVar("Made")


class Expressions:
    """The part that lowers expressions. value() lowers scalars, and place() lowers what has members
    or can be assigned to."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        scope.apply_result = self.refused_apply_result
        scope.last_union_member = self.last_union_member

    # ------------------------------------------------------------------ scalars

    def value(self, expression: ast.Expression) -> ir.Expr:
        """Returns the BMv2 expression of a scalar. The statements that the scalar needs are emitted
        before."""
        shape = self.scope.type_of(expression)
        known = self.scope.constant(expression)
        if known is not None:
            lowered = self.known_value(known, shape, expression)
        else:
            lowered = self._scalar(expression)
        target = self.scope.typed.implicit_cast.get(expression)
        if target is not None:
            lowered, shape = arithmetic.convert(lowered, shape, target), target
        if isinstance(lowered, ir.Op) and lowered.depth > MAX_DEPTH:
            lowered = self.keep(lowered, shape)
        return lowered

    def known_value(self, known: Known, shape: types.Type, where: ast.Node) -> ir.Expr:
        if isinstance(known, bool):
            return ir.BoolConstant(known)
        if isinstance(known, int):
            return arithmetic.constant(known, shape)
        if isinstance(known, str):
            return ir.Text(known)
        if isinstance(known, ast.EnumMember):
            return ir.Const(self.enum_number(known, shape), scalar_width(shape))
        raise self.scope.unsupported(where, f"a constant of type {shape} here")

    def enum_number(self, member: ast.EnumMember, shape: types.Type) -> int:
        """Returns the number of an enum's member. The members of an enum without an underlying type
        are numbered from 0 in order of declaration."""
        if member in self.scope.typed.enum_values:
            return self.scope.typed.enum_values[member]
        if member in self.scope.typed.error_codes:
            return self.scope.typed.error_codes[member]
        held = shape
        while isinstance(held, types.NewType):
            held = held.underlying
        assert isinstance(held, types.Enum), held
        return held.declaration.members.index(member)

    def _scalar(self, expression: ast.Expression) -> ir.Expr:
        if isinstance(expression, ast.Binary):
            return self._binary(expression)
        if isinstance(expression, ast.Unary):
            operand = self.value(expression.operand)
            if expression.operator == "!":
                return arithmetic.negate(operand)
            return arithmetic.unary(expression.operator, operand, self.scope.type_of(expression))
        if isinstance(expression, ast.Cast):
            return self._cast(expression)
        if isinstance(expression, ast.Conditional):
            return self._conditional(expression)
        if isinstance(expression, ast.StringLiteral):
            return ir.Text(expression.value)
        return self.read(self.place(expression), expression)

    def read(self, place: Place, where: ast.Node) -> ir.Expr:
        """Returns the value of the scalar that a place holds. A boolean is returned as a boolean
        expression."""
        if isinstance(place, Scalar):
            if isinstance(plain(place.type), types.Boolean):
                return arithmetic.as_boolean(place.ref)
            return place.ref
        if isinstance(place, Value):
            return place.expr
        if isinstance(place, SlicePlace):
            whole = self.read(place.base, where)
            bits = arithmetic.unsigned(whole, scalar_width(place.base.type))
            return arithmetic.slice_bits(bits, place.high, place.low)
        if isinstance(place, MovingSlicePlace):
            return self._moving_bits(place, where)
        if isinstance(place, SelectedPlace) and is_scalar(place.type):
            return self._selected(place, where)
        raise self.scope.unsupported(where, f"a value of type {place.type} in this expression")

    def _moving_bits(self, place: MovingSlicePlace, where: ast.Node) -> ir.Expr:
        shape = types.Bits(scalar_width(place.base.type))
        bits = arithmetic.unsigned(self.read(place.base, where), shape.width)
        shifted = arithmetic.binary(">>", bits, place.start, shape)
        return arithmetic.wrap(shifted, scalar_width(place.type))

    def _selected(self, place: SelectedPlace, where: ast.Node) -> ir.Expr:
        """Returns the value of the alternative that the index chooses, or 0 if the index is beyond
        the last alternative."""
        boolean = isinstance(plain(place.type), types.Boolean)
        nothing: ir.Expr = ir.Const(0, max(1, scalar_width(place.type)))
        data = self.select(
            place,
            lambda one: arithmetic.as_data(self.read(one, where)),
            nothing,
            arithmetic.choose,
        )
        return arithmetic.as_boolean(data) if boolean else data

    def select(
        self,
        place: SelectedPlace,
        leaf: Callable[[Place], Made],
        outside: Made,
        join: Callable[[ir.Expr, Made, Made], Made],
    ) -> Made:
        """Returns a tree of comparisons of the index, whose leaves are the results of `leaf` for
        each alternative of `place`.

        outside: the result for an index beyond the last alternative. join: returns the choice
        between two results, given (condition, then, otherwise).
        """

        def tree(low: int, high: int) -> Made:
            if high - low == 1:
                return leaf(place.alternatives[low])
            middle = (low + high) // 2
            below = arithmetic.compare("<", place.index, ir.Const(middle, 32))
            return join(below, tree(low, middle), tree(middle, high))

        count = len(place.alternatives)
        inside = arithmetic.compare("<", place.index, ir.Const(count, 32))
        lowest, highest = place.index.range
        if lowest is None or lowest < 0:
            positive = arithmetic.compare(">=", place.index, ir.Const(0, 32))
            inside = arithmetic.both(positive, inside)
        elif highest is not None and highest < count:
            return tree(0, count)
        return join(inside, tree(0, count), outside) if count else outside

    def select_code(
        self, place: SelectedPlace, branch: Callable[[Place], None], outside: list[ir.Statement]
    ) -> None:
        """Emits the code that `branch` makes for each alternative. At run time, only the code of
        the alternative that the index chooses is executed."""

        def leaf(one: Place) -> list[ir.Statement]:
            with self.scope.into([]) as body:
                branch(one)
            return body

        def join(
            test: ir.Expr, then: list[ir.Statement], otherwise: list[ir.Statement]
        ) -> list[ir.Statement]:
            return [ir.If(self.scope.position, test, then, otherwise)]

        code: list[ir.Statement] = self.select(place, leaf, outside, join)
        self.scope.code.extend(code)

    def _cast(self, expression: ast.Cast) -> ir.Expr:
        source, target = self.scope.type_of(expression.operand), self.scope.type_of(expression)
        shape = plain(source)
        if isinstance(shape, (types.Struct, types.StructLiteral, types.Tuple)):
            raise self.scope.unsupported(expression, f"a cast from {source} to {target}")
        implied = self.scope.typed.implicit_cast.get(expression.operand)
        return arithmetic.convert(self.value(expression.operand), implied or source, target)

    def values(self, expressions: Sequence[ast.Expression]) -> list[ir.Expr]:
        """Returns the values of several scalar expressions, evaluated from left to right (see
        `operands`)."""
        places = self.operands(expressions)
        return [self.read(p, e) for p, e in zip(places, expressions, strict=True)]

    def operands(self, expressions: Sequence[ast.Expression]) -> list[Place]:
        """Returns the values of several expressions, evaluated from left to right. A value is
        copied to a temporary if a later expression has side effects."""
        places: list[Place] = []
        marks: list[int] = []
        for expression in expressions:
            places.append(self.operand(expression))
            marks.append(len(self.scope.code))
        for i in reversed(range(len(places) - 1)):
            if marks[i] < len(self.scope.code) and not is_constant(places[i]):
                rest = self.scope.code[marks[i] :]
                del self.scope.code[marks[i] :]
                places[i] = self.set_aside(places[i])
                self.scope.code.extend(rest)
        return places

    def set_aside(self, place: Place) -> Place:
        """Returns a copy of the value that a place holds now."""
        if isinstance(place, Value):
            return Value(place.type, self.keep(place.expr, place.type))
        copy = self.scope.temporary(place.type)
        self.scope.assign(copy, place)
        return copy

    def keep(self, expr: ir.Expr, shape: types.Type) -> ir.Expr:
        """Evaluates the expression now, into a temporary, and returns the temporary."""
        place = self.scope.temporary(shape)
        assert isinstance(place, Scalar)
        self.scope.emit("assign", place.ref, arithmetic.as_data(expr))
        return arithmetic.as_boolean(place.ref) if expr.is_boolean else place.ref

    def _binary(self, expression: ast.Binary) -> ir.Expr:
        operator = expression.operator
        if operator in ("&&", "||"):
            return self._short_circuit(expression)
        shape = self.scope.type_of(expression.left)
        if operator in ("==", "!=") and not is_scalar(shape):
            sides = self.operands((expression.left, expression.right))
            equal = self.scope.equal(sides[0], sides[1], expression)
            return equal if operator == "==" else arithmetic.negate(equal)
        left, right = self.values((expression.left, expression.right))
        if operator in arithmetic.COMPARISONS:
            return arithmetic.compare(operator, left, right)
        if operator == "++":
            right_width = scalar_width(self.operand_type(expression.right))
            left_width = scalar_width(self.operand_type(expression.left))
            joined = arithmetic.concatenate(left, left_width, right, right_width)
            return arithmetic.convert(
                joined, types.Bits(left_width + right_width), self.scope.type_of(expression)
            )
        return arithmetic.binary(operator, left, right, self.scope.type_of(expression))

    def operand_type(self, expression: ast.Expression) -> types.Type:
        return self.scope.typed.implicit_cast.get(expression) or self.scope.type_of(expression)

    def _short_circuit(self, expression: ast.Binary) -> ir.Expr:
        left = self.value(expression.left)
        with self.scope.into([]) as code:
            right = self.value(expression.right)
        conjunction = expression.operator == "&&"
        if not code:
            join = arithmetic.both if conjunction else arithmetic.either
            return join(left, right)
        result = self.scope.temporary(types.BOOLEAN)
        assert isinstance(result, Scalar)
        self.scope.emit("assign", result.ref, arithmetic.as_data(left))
        with self.scope.into(code):
            self.scope.emit("assign", result.ref, arithmetic.as_data(right))
        condition = arithmetic.as_boolean(result.ref)
        then, otherwise = (code, []) if conjunction else ([], code)
        self.scope.code.append(ir.If(expression.position, condition, then, otherwise))
        return condition

    def _conditional(self, expression: ast.Conditional) -> ir.Expr:
        condition = self.value(expression.condition)
        with self.scope.into([]) as then_code:
            then = self.value(expression.then)
        with self.scope.into([]) as other_code:
            otherwise = self.value(expression.otherwise)
        if not then_code and not other_code:
            if then.is_boolean:
                then, otherwise = arithmetic.as_data(then), arithmetic.as_data(otherwise)
                return arithmetic.as_boolean(arithmetic.choose(condition, then, otherwise))
            return arithmetic.choose(condition, then, otherwise)
        result = self.scope.temporary(self.scope.type_of(expression))
        assert isinstance(result, Scalar)
        for code, chosen in ((then_code, then), (other_code, otherwise)):
            with self.scope.into(code):
                self.scope.emit("assign", result.ref, arithmetic.as_data(chosen))
        self.scope.code.append(ir.If(expression.position, condition, then_code, other_code))
        return self.read(result, expression)

    # ------------------------------------------------------------------- places

    def place(self, expression: ast.Expression, freeze: bool = False) -> Place:
        """Returns the place that `expression` stands for. With `freeze`, an index in the expression
        is evaluated at this point of the code, and only once."""
        shape = self.scope.type_of(expression)
        known = self.scope.constant(expression)
        if known is not None:
            return self.known_place(known, shape, expression)
        if isinstance(expression, ast.NameExpression):
            return self._named(expression)
        if isinstance(expression, ast.Member):
            return self._member(expression, freeze)
        if isinstance(expression, ast.Index):
            return self._index(expression, freeze)
        if isinstance(expression, ast.Slice):
            return self._slice(expression, freeze)
        if isinstance(expression, ast.PlusSlice):
            return self._plus_slice(expression, freeze)
        if isinstance(expression, ast.Call):
            result = self.scope.call_value(expression)
            assert result is not None
            return result
        return self._literal(expression, shape)

    def known_place(self, known: Known, shape: types.Type, where: ast.Node) -> Place:
        if isinstance(known, tuple):
            kinds = listed_members(shape, len(known))
            parts = zip(kinds, known, strict=True)
            members = {n: self.known_place(v, t, where) for (n, t), v in parts}
            return StructPlace(shape, members)
        return Value(shape, self.known_value(known, shape, where))

    def _named(self, expression: ast.NameExpression) -> Place:
        declaration = self.scope.typed.decl_of[expression]
        place = self.scope.frame.lookup(declaration)
        if place is None and isinstance(declaration, ast.Constant):
            return self.place(declaration.value)
        if place is None:
            raise self.scope.unsupported(expression, f"{expression.name} in this place")
        return place

    def _literal(self, expression: ast.Expression, shape: types.Type) -> Place:
        if isinstance(expression, ast.InvalidHeader):
            return InvalidPlace(shape)
        if isinstance(expression, ast.DefaultInitializer):
            return default_place(shape)
        if isinstance(expression, ast.ListExpression):
            parts = self.operands(expression.elements)
            names = [name for name, _ in listed_members(shape, len(parts))]
            return _filled(shape, dict(zip(names, parts, strict=False)))
        if isinstance(expression, ast.StructExpression):
            values = self.operands([m.value for m in expression.members])
            members = zip(expression.members, values, strict=True)
            return _filled(shape, {member.name: value for member, value in members})
        if isinstance(expression, ast.Cast):
            return self._cast_place(expression, shape)
        if isinstance(expression, ast.Conditional) and not is_scalar(shape):
            return self._choose_place(expression, shape)
        if is_scalar(shape):
            return Value(shape, self._scalar(expression))
        raise self.scope.unsupported(expression, f"this expression of type {shape}")

    def _cast_place(self, expression: ast.Cast, shape: types.Type) -> Place:
        if is_scalar(shape):
            return Value(shape, self._cast(expression))
        operand = self.place(expression.operand)
        if isinstance(operand, StructPlace) and not isinstance(shape, types.List):
            names = [name for name, _ in members_of(plain(shape))]
            return StructPlace(shape, dict(zip(names, operand.members.values(), strict=True)))
        return operand

    def _choose_place(self, expression: ast.Conditional, shape: types.Type) -> Place:
        condition = self.value(expression.condition)
        result = self.scope.temporary(shape)
        codes: list[list[ir.Statement]] = []
        for side in (expression.then, expression.otherwise):
            with self.scope.into([]) as code:
                self.scope.assign(result, self.place(side))
            codes.append(code)
        self.scope.code.append(ir.If(expression.position, condition, *codes))
        return result

    def operand(self, expression: ast.Expression) -> Place:
        """Returns an expression as a place. A scalar is converted by its implicit cast and becomes
        a Value."""
        shape = self.operand_type(expression)
        if is_scalar(shape):
            return Value(shape, self.value(expression))
        return self.place(expression)

    def _member(self, expression: ast.Member, freeze: bool) -> Place:
        name = expression.member
        base_type = plain(self.scope.type_of(expression.base))
        if isinstance(base_type, types.ApplyResult):
            return self.scope.apply_result(expression)
        base = self.place(expression.base, freeze)
        if isinstance(base, StackPlace):
            return self._stack_property(base, name, expression)
        if isinstance(base, (StructPlace, UnionPlace)) and name in base.members:
            return base.members[name]
        if isinstance(base, SelectedPlace):
            return base.member(name, self.scope.type_of(expression))
        if isinstance(base, LastHeader) and base.stack.of_unions:
            return self.scope.last_union_member(base.stack, name, expression)
        if isinstance(base, WithFields):
            return base.member(name)
        if isinstance(base, NextHeader):
            if not base.stack.of_unions:
                raise self.scope.unsupported(
                    expression, "reading the next element of a header stack"
                )
            return NextUnionMember(self.scope.type_of(expression), base.stack, name)
        raise self.scope.unsupported(expression, f"member {name} of this value")

    def last_union_member(self, stack: StackPlace, name: str, where: ast.Member) -> Place:
        """Returns the place of `stack.last.member`, for a stack of unions."""
        index = self.keep(ir.Op("last_stack_index", None, stack.expr), types.BIT32)
        shape = self.scope.type_of(where)
        return SelectedPlace(shape, index, [member_of(e, name) for e in stack.elements])

    def refused_apply_result(self, expression: ast.Member) -> Place:
        """Refuses `t.apply().hit` and `.miss` in blocks that have no tables."""
        raise self.scope.unsupported(expression, f"{expression.member} of a table here")

    def _stack_property(self, stack: StackPlace, name: str, where: ast.Expression) -> Place:
        shape = self.scope.type_of(where)
        if name == "size":
            return Value(shape, ir.Const(len(stack.elements), 32))
        if name == "lastIndex":
            return Value(shape, ir.Op("last_stack_index", None, stack.expr))
        if name == "last":
            return LastHeader(shape, stack)
        assert name == "next", name
        return NextHeader(shape, stack)

    def _index(self, expression: ast.Index, freeze: bool) -> Place:
        base = self.place(expression.base, freeze)
        known = self.scope.evaluated(expression.index)
        if isinstance(known, ast.EnumMember):
            known = self.enum_number(known, self.scope.type_of(expression.index))
        if isinstance(known, int):
            return self._element(base, known, expression)
        index = self.value(expression.index)
        if freeze or not isinstance(base, StackPlace) or base.of_unions:
            index = self.keep(index, self.operand_type(expression.index))
        found = self._element(base, index, expression)
        if leaf_count(found) > MAX_ALTERNATIVES:
            problem = f"an index known at run time among more than {MAX_ALTERNATIVES} elements"
            raise self.scope.unsupported(expression, problem, "use a register")
        return found

    def _element(self, base: Place, index: int | ir.Expr, where: ast.Index) -> Place:
        """Returns the place of `base[index]`. An index that is not an int is an expression whose
        value is known only at run time."""
        shape = self.scope.type_of(where)
        if isinstance(base, SelectedPlace):
            inner = [self._element(a, index, where) for a in base.alternatives]
            return SelectedPlace(shape, base.index, inner)
        assert isinstance(base, (StructPlace, StackPlace)), base
        elements = list(base.members.values()) if isinstance(base, StructPlace) else base.elements
        if isinstance(index, int):
            if not 0 <= index < len(elements):
                raise self.scope.unsupported(where, "an index outside the array")
            return elements[index]
        if isinstance(base, StructPlace) or base.of_unions:
            return SelectedPlace(shape, index, elements)
        return HeaderPlace(shape, ir.Op("dereference_header_stack", base.expr, index), base)

    def _slice(self, expression: ast.Slice, freeze: bool) -> Place:
        high, low = self.scope.evaluated(expression.high), self.scope.evaluated(expression.low)
        if not isinstance(high, int) or not isinstance(low, int):
            raise self.scope.unsupported(expression, "a slice whose bounds are not constant")
        return bits_of(
            self._sliced(expression.base, freeze), self.scope.type_of(expression), high, low
        )

    def _sliced(self, base: ast.Expression, freeze: bool) -> Place:
        if isinstance(base, (ast.NameExpression, ast.Member, ast.Slice, ast.PlusSlice, ast.Index)):
            return self.place(base, freeze)
        return Value(self.scope.type_of(base), self.value(base))

    def _plus_slice(self, expression: ast.PlusSlice, freeze: bool) -> Place:
        shape = self.scope.type_of(expression)
        base = self._sliced(expression.base, freeze)
        start = self.value(expression.start)
        if isinstance(start, ir.Const):
            return bits_of(base, shape, start.value + scalar_width(shape) - 1, start.value)
        if freeze:
            start = self.keep(start, self.operand_type(expression.start))
        return MovingSlicePlace(shape, base, start)


def _filled(shape: types.Type, given: dict[str, Place]) -> StructPlace:
    """Returns the given members together with the default values that `...` gives to the others."""
    members = listed_members(shape, len(given))
    return StructPlace(shape, {n: given[n] if n in given else default_place(t) for n, t in members})
