"""Applies implicit conversions (P4_16 section 8.11.2), and gives lists and numbers their final
types."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.context import Context
from p4native.compiler.check.unify import block_difference, same_object
from p4native.compiler.fold import cast, fits, limits, wrap

_LITERALS = (
    ast.ListExpression,
    ast.StructExpression,
    ast.InvalidHeader,
    ast.DefaultInitializer,
    ast.Conditional,
)

_OBJECTS = (types.Block, types.Extern, types.Package)
_WITHOUT_DEFAULT = (*_OBJECTS, types.List, types.String, types.MatchKind, types.TypeVariable)


class Coercion:
    """The part that converts checked expressions to the types that are needed where they stand."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def coerce(self, expression: ast.Expression, target: types.Type, what: str) -> bool:
        """Converts a checked expression to the type `target`. Reports an error and returns False if
        this is not possible.

        what: what has the target type, as words for the error message.
        """
        source = self.context.program.type_of[expression]
        if source == target or _unknown(source) or _unknown(target):
            return True
        if isinstance(expression, _LITERALS) and not isinstance(source, types.Integer):
            return self._coerce_literal(expression, target, what)
        if self._convert(expression, source, target):
            return True
        self._mismatch(expression, source, target, what)
        return False

    def coerce_assigned(self, expression: ast.Expression, target: types.Type, what: str) -> bool:
        """Converts as `coerce` does, and also turns a number without a width into a value of a new
        type, as p4c does."""
        source = self.context.program.type_of[expression]
        inner = target
        while isinstance(inner, types.NewType):
            inner = inner.underlying
        if isinstance(source, types.Integer) and isinstance(inner, types.Bits):
            self.retype_integer(expression, inner)
            if expression in self.context.program.const_value:
                self.context.program.type_of[expression] = target
            return True
        return self.coerce(expression, target, what)

    def _mismatch(
        self, expression: ast.Expression, source: types.Type, target: types.Type, what: str
    ) -> None:
        hint = ""
        if _castable(source, target):
            hint = f"convert it: ({target})(...)"
        elif target == types.BOOLEAN and isinstance(source, types.Bits):
            hint = "compare it: ... == 1"
        elif isinstance(source, types.Block) and isinstance(target, types.Block):
            hint = block_difference(target, source)
        self.context.error(expression, f"{what} has type {target}, but this is {source}", hint)

    def _convert(self, expression: ast.Expression, source: types.Type, target: types.Type) -> bool:
        if isinstance(source, types.Integer) and isinstance(target, types.Bits):
            self.retype_integer(expression, target)
            return True
        if isinstance(source, types.SerializableEnum) and source.underlying == target:
            return self._enum_to_bits(expression, target)
        if isinstance(source, types.Integer) and isinstance(target, types.Integer):
            return True
        if isinstance(source, types.Bits) and isinstance(target, types.Integer):
            return self._bits_to_integer(expression)
        if isinstance(source, _OBJECTS) and isinstance(target, _OBJECTS):
            return same_object(target, source)
        if isinstance(source, types.Tuple) and isinstance(target, types.List):
            return all(e == target.element for e in source.elements)
        return False

    def _bits_to_integer(self, expression: ast.Expression) -> bool:
        if expression in self.context.program.const_value:
            self.context.program.type_of[expression] = types.INTEGER
        else:
            self.context.program.implicit_cast[expression] = types.INTEGER
        return True

    def _enum_to_bits(self, expression: ast.Expression, target: types.Type) -> bool:
        value = self.context.program.const_value.get(expression)
        if value is None:
            self.context.program.implicit_cast[expression] = target
        else:
            converted = cast(value, target, self.context.program.enum_values)
            assert converted is not None
            self.context.set_constant(expression, converted)
            self.context.program.type_of[expression] = target
        return True

    def retype_integer(self, expression: ast.Expression, target: types.Bits) -> None:
        """Gives a width to an expression of arbitrary precision."""
        value = self.context.program.const_value.get(expression)
        if value is None:
            self.context.program.implicit_cast[expression] = target
            return
        assert isinstance(value, int)
        self.context.program.type_of[expression] = target
        self.context.set_constant(expression, wrap(value, target))
        if not fits(value, target):
            self._warn_overflow(expression, value, target)

    def _warn_overflow(self, expression: ast.Expression, value: int, target: types.Bits) -> None:
        low, high = limits(target)
        kind = "mismatch" if value < 0 and not target.signed else "overflow"
        if target.signed or not -(1 << target.width) < value < 0:
            self.context.warn(
                expression,
                kind,
                f"{value} does not fit {target} ({low}..{high}); it becomes {wrap(value, target)}",
            )

    # ---- literals take the type that is expected of them

    def _coerce_literal(self, expression: ast.Expression, target: types.Type, what: str) -> bool:
        if isinstance(expression, ast.Conditional):
            return self._coerce_conditional(expression, target, what)
        if isinstance(expression, ast.InvalidHeader):
            return self._coerce_invalid(expression, target, what)
        if isinstance(expression, ast.DefaultInitializer):
            if isinstance(target, _WITHOUT_DEFAULT):
                self.context.error(
                    expression, f"{what} has type {target}, which has no default value"
                )
                return False
            self.context.program.type_of[expression] = target
            return True
        if isinstance(expression, ast.StructExpression):
            return self._coerce_struct(expression, target, what)
        assert isinstance(expression, ast.ListExpression)
        return self._coerce_list(expression, target, what)

    def _coerce_conditional(
        self, expression: ast.Conditional, target: types.Type, what: str
    ) -> bool:
        fine = self.coerce(expression.then, target, what)
        fine = self.coerce(expression.otherwise, target, what) and fine
        self.context.program.type_of[expression] = target if fine else types.UNKNOWN
        return fine

    def _coerce_invalid(self, expression: ast.InvalidHeader, target: types.Type, what: str) -> bool:
        if not isinstance(target, (types.Header, types.HeaderUnion)):
            self.context.error(expression, f"{what} has type {target}, but {{#}} is a header")
            return False
        self.context.program.type_of[expression] = target
        return True

    def _coerce_struct(
        self, expression: ast.StructExpression, target: types.Type, what: str
    ) -> bool:
        if not isinstance(target, (types.Struct, types.Header)):
            self._mismatch(expression, self.context.program.type_of[expression], target, what)
            return False
        fine = True
        for member in expression.members:
            field = target.field(member.name)
            if field is None:
                self.context.error(member, f"{target} has no field '{member.name}'")
                fine = False
            else:
                fine = self.coerce(member.value, field.type, f"field '{member.name}'") and fine
        missing = {f.name for f in target.fields} - {m.name for m in expression.members}
        if missing and not expression.has_dots:
            names = ", ".join(f.name for f in target.fields if f.name in missing)
            self.context.error(
                expression, f"no value for {names} of {target}", "end the list with ', ...'"
            )
            fine = False
        self.context.program.type_of[expression] = target
        self._fold_struct(expression, target)
        return fine

    def _fold_struct(self, expression: ast.StructExpression, target: types.StructLike) -> None:
        given = {m.name: self.context.program.const_value.get(m.value) for m in expression.members}
        values = tuple(given.get(f.name) for f in target.fields)
        if None not in values and isinstance(target, types.Struct):
            self.context.set_constant(expression, tuple(v for v in values if v is not None))

    def _coerce_list(self, expression: ast.ListExpression, target: types.Type, what: str) -> bool:
        wanted = _element_types(target, len(expression.elements))
        if wanted is None:
            self._mismatch(expression, self.context.program.type_of[expression], target, what)
            return False
        given = len(expression.elements)
        short = given < len(wanted) and expression.has_dots
        if given > len(wanted) or (given < len(wanted) and not short):
            elements = f"{len(wanted)} element{'s' * (len(wanted) != 1)}"
            self.context.error(expression, f"{what} has {elements} ({target}), not {given}")
            return False
        fine = True
        for element, type_ in zip(expression.elements, wanted, strict=False):
            fine = self.coerce(element, type_, "this element") and fine
        self.context.program.type_of[expression] = target
        self.fold_list(expression)
        return fine

    def fold_list(self, expression: ast.ListExpression) -> None:
        values = [self.context.program.const_value.get(e) for e in expression.elements]
        known = tuple(v for v in values if v is not None)
        header = isinstance(self.context.program.type_of[expression], (types.Header, types.Stack))
        if len(known) == len(values) and not expression.has_dots and not header:
            self.context.set_constant(expression, known)


def _unknown(type_: types.Type) -> bool:
    return isinstance(type_, (types.Unknown, types.DontCare))


def _element_types(target: types.Type, count: int) -> tuple[types.Type, ...] | None:
    if isinstance(target, (types.Struct, types.Header)):
        return tuple(f.type for f in target.fields)
    if isinstance(target, types.Tuple):
        return target.elements
    if isinstance(target, types.Stack):
        return (target.element,) * target.size
    if isinstance(target, types.List):
        return (target.element,) * count
    return None


def _castable(source: types.Type, target: types.Type) -> bool:
    scalar = (types.Bits, types.NewType, types.SerializableEnum)
    return isinstance(source, (*scalar, types.Integer)) and isinstance(target, scalar)
