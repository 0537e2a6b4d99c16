"""Lowers equality of values that are not scalars, member by member, and the validity of headers and
unions."""

from __future__ import annotations

from p4native.compiler import ast
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.expressions import Expressions
from p4native.compiler.backend.places import (
    HeaderPlace,
    InvalidPlace,
    LastHeader,
    Place,
    SelectedPlace,
    StackPlace,
    StructPlace,
    UnionPlace,
    VarbitPlace,
    is_scalar,
)
from p4native.compiler.backend.scope import Scope


class Comparisons:
    """The part that lowers equality and validity of values that have members."""

    def __init__(self, scope: Scope, expressions: Expressions) -> None:
        self.scope = scope
        self.expressions = expressions
        scope.equal = self.equal

    def equal(self, left: Place, right: Place, where: ast.Node) -> ir.Expr:
        """Returns the condition that two values are equal, compared member by member. Two invalid
        headers are also equal (P4_16 section 8.17)."""
        if isinstance(left, InvalidPlace) or isinstance(right, InvalidPlace):
            other = right if isinstance(left, InvalidPlace) else left
            return arithmetic.negate(self.is_valid(other, where))
        left, right = self._settled(left), self._settled(right)
        if isinstance(left, HeaderPlace) or isinstance(right, HeaderPlace):
            return self._headers_equal(left, right, where)
        if isinstance(left, StackPlace) and isinstance(right, StackPlace):
            pairs = list(zip(left.elements, right.elements, strict=True))
            return self._all_equal(pairs, where)
        if isinstance(left, StructPlace) and isinstance(right, StructPlace):
            values = zip(left.members.values(), right.members.values(), strict=True)
            return self._all_equal(list(values), where)
        if isinstance(left, UnionPlace) and isinstance(right, UnionPlace):
            values = zip(left.members.values(), right.members.values(), strict=True)
            return self._all_equal(list(values), where)
        if isinstance(left, VarbitPlace) and isinstance(right, VarbitPlace):
            return ir.Op("==", left.ref, right.ref)
        return arithmetic.compare(
            "==", self.expressions.read(left, where), self.expressions.read(right, where)
        )

    def _settled(self, place: Place) -> Place:
        """Returns a copy of a struct, header or the like that an index chooses at run time. Returns
        any other place unchanged."""
        if isinstance(place, LastHeader):
            return self.last_as_header(place)
        picked = isinstance(place, SelectedPlace) and not is_scalar(place.type)
        return self.expressions.set_aside(place) if picked else place

    def _all_equal(self, pairs: list[tuple[Place, Place]], where: ast.Node) -> ir.Expr:
        result: ir.Expr = arithmetic.TRUE
        for left, right in pairs:
            result = arithmetic.both(result, self.equal(left, right, where))
        return result

    def _headers_equal(self, left: Place, right: Place, where: ast.Node) -> ir.Expr:
        parts = [self._header_fields(side) for side in (left, right)]
        same = self._all_equal(list(zip(*parts, strict=True)), where)
        valid = [self.is_valid(side, where) for side in (left, right)]
        both_valid = arithmetic.both(arithmetic.both(*valid), same)
        none_valid = arithmetic.both(*(arithmetic.negate(v) for v in valid))
        return arithmetic.either(none_valid, both_valid)

    def _header_fields(self, place: Place) -> list[Place]:
        if isinstance(place, HeaderPlace):
            return place.fields()
        assert isinstance(place, StructPlace), place
        return list(place.members.values())

    def is_valid(self, place: Place, where: ast.Node) -> ir.Expr:
        if isinstance(place, StructPlace):
            return arithmetic.TRUE
        if isinstance(place, InvalidPlace):
            return arithmetic.FALSE
        if isinstance(place, UnionPlace):
            return ir.Op("valid_union", None, place.expr)
        if isinstance(place, SelectedPlace):
            return self._selected_valid(place, where)
        if isinstance(place, LastHeader):
            place = self.last_as_header(place)
        if not isinstance(place, HeaderPlace):
            raise self.scope.unsupported(where, "the validity of this value")
        if place.name is not None:
            return arithmetic.as_boolean(ir.FieldRef(place.name, "$valid$", 1))
        return ir.Op("valid", None, place.expr)

    def _selected_valid(self, place: SelectedPlace, where: ast.Node) -> ir.Expr:
        no: ir.Expr = ir.Const(0, 1)
        data = self.expressions.select(
            place, lambda one: arithmetic.as_data(self.is_valid(one, where)), no, arithmetic.choose
        )
        return arithmetic.as_boolean(data)

    def last_as_header(self, place: LastHeader) -> HeaderPlace:
        stack = place.stack.expr
        index = ir.Op("last_stack_index", None, stack)
        return HeaderPlace(place.type, ir.Op("dereference_header_stack", stack, index))
