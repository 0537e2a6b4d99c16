"""Lowers stores of values of any type into any place. A value that BMv2 cannot copy as a whole is
stored member by member."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.comparisons import Comparisons
from p4native.compiler.backend.expressions import Expressions
from p4native.compiler.backend.places import (
    HeaderPlace,
    InvalidPlace,
    LastHeader,
    MovingSlicePlace,
    Place,
    Scalar,
    SelectedPlace,
    SlicePlace,
    StackPlace,
    StructPlace,
    UnionPlace,
    Value,
    VarbitPlace,
    footprint,
    is_scalar,
    is_signed,
    plain,
    scalar_width,
)
from p4native.compiler.backend.scope import Scope


class Assignments:
    """The part that lowers assignments of values of all types and the delivery of `out`
    arguments."""

    def __init__(self, scope: Scope, expressions: Expressions, comparisons: Comparisons) -> None:
        self.scope = scope
        self.expressions = expressions
        self.comparisons = comparisons
        scope.assign = self.assign

    def assignment(self, statement: ast.Assignment) -> None:
        """Lowers `left = right` and the compound `left op= right`."""
        has_call = any(isinstance(n, ast.Call) for n in ast.walk(statement.right))
        target = self.expressions.place(statement.left, freeze=has_call)
        if statement.operator:
            self._compound(statement, target)
        elif is_scalar(target.type):
            self.store(target, self.expressions.value(statement.right))
        else:
            self.assign(target, self.expressions.operand(statement.right))

    def _compound(self, statement: ast.Assignment, target: Place) -> None:
        right = self.expressions.value(statement.right)
        left = self.expressions.read(target, statement)
        shape = target.type
        if statement.operator == "++":
            raise self.scope.unsupported(statement, "the assignment ++=")
        self.store(target, arithmetic.binary(statement.operator, left, right, shape))

    def store(self, target: Place, expr: ir.Expr) -> None:
        """Stores a scalar in its place. If the target is a field, the store cuts the value to the
        field's width."""
        if isinstance(target, SlicePlace):
            self._store_slice(target, expr)
            return
        if isinstance(target, MovingSlicePlace):
            self._store_moving(target, expr)
            return
        if isinstance(target, SelectedPlace):
            self._store_selected(target, expr)
            return
        assert isinstance(target, Scalar), target
        data = arithmetic.as_data(expr)
        if not is_signed(target.type):
            data = arithmetic.unwrap(data, scalar_width(target.type))
        if data != target.ref:
            self.scope.emit("assign", target.ref, data)

    def _store_slice(self, target: SlicePlace, expr: ir.Expr) -> None:
        base = target.base
        width = scalar_width(base.type)
        whole = arithmetic.unsigned(self.expressions.read(base, _at(self.scope)), width)
        part = arithmetic.unsigned(arithmetic.as_data(expr), target.high - target.low + 1)
        merged = arithmetic.replace_bits(whole, width, target.high, target.low, part)
        self.store(base, arithmetic.wrap(merged, width, is_signed(base.type)))

    def _store_moving(self, target: MovingSlicePlace, expr: ir.Expr) -> None:
        """Replaces the bits from `start` upwards, which are the target. Bits beyond the end of the
        number that contains them are dropped."""
        base, shape = target.base, types.Bits(scalar_width(target.base.type))
        whole = arithmetic.unsigned(self.expressions.read(base, _at(self.scope)), shape.width)
        part = arithmetic.unsigned(arithmetic.as_data(expr), scalar_width(target.type))
        field = arithmetic.constant(arithmetic.mask(scalar_width(target.type)), shape)
        hole = arithmetic.binary("<<", field, target.start, shape)
        rest = arithmetic.binary("&", whole, arithmetic.unary("~", hole, shape), shape)
        placed = arithmetic.binary("<<", part, target.start, shape)
        merged = arithmetic.binary("|", rest, placed, shape)
        self.store(base, arithmetic.wrap(merged, shape.width, is_signed(base.type)))

    def _store_selected(self, target: SelectedPlace, expr: ir.Expr) -> None:
        value = (
            expr
            if isinstance(expr, (ir.Const, ir.BoolConstant))
            else self.expressions.keep(expr, target.type)
        )
        self.expressions.select_code(target, lambda place: self.store(place, value), [])

    def _assign_selected(self, target: Place, source: SelectedPlace) -> None:
        """Assigns the element that an index chooses at run time. If the index is beyond the last
        element, the headers of `target` become invalid."""
        with self.scope.into([]) as outside:
            self.invalidate(target)
        self.expressions.select_code(source, lambda place: self.assign(target, place), outside)

    def assign(self, target: Place, source: Place) -> None:
        """Lowers the assignment of any value to a place of its type."""
        if is_scalar(target.type):
            self.store(target, self.expressions.read(source, _at(self.scope)))
        elif isinstance(source, SelectedPlace):
            self._assign_selected(target, source)
        elif isinstance(target, SelectedPlace):
            self.expressions.select_code(target, lambda place: self.assign(place, source), [])
        elif isinstance(target, VarbitPlace):
            assert isinstance(source, VarbitPlace), source
            self.scope.emit("assign_VL", target.ref, source.ref)
        elif isinstance(target, StructPlace):
            self._assign_struct(target, source)
        elif isinstance(target, (HeaderPlace, LastHeader)):
            self._assign_header(target, source)
        elif isinstance(target, StackPlace):
            self._assign_stack(target, source)
        elif isinstance(target, UnionPlace):
            self._assign_union(target, source)
        else:
            raise self.scope.unsupported(_at(self.scope), "an assignment to this value")

    def _assign_struct(self, target: StructPlace, source: Place) -> None:
        assert isinstance(source, StructPlace), source
        pairs = zip(target.members.values(), self.detached(target, source), strict=True)
        for to, given in pairs:
            self.assign(to, given)

    def detached(self, target: Place, source: StructPlace) -> list[Place]:
        """Returns the members of `source`, some of them as copies.

        A member is copied first if it is computed from `target` itself. It is also copied if it
        depends on which headers are valid, since an assignment to a header makes it valid and the
        other members of its union invalid.
        """
        covered = set(footprint(target))
        return [self._detached(covered, part) for part in source.members.values()]

    def _detached(self, covered: set[str], part: Place) -> Place:
        if isinstance(part, StructPlace):
            members = {n: self._detached(covered, p) for n, p in part.members.items()}
            return StructPlace(part.type, members)
        if isinstance(part, Value):
            if any(str(e) in covered or _reads_validity(e) for e in ir.walk(part.expr)):
                return Value(part.type, self.expressions.keep(part.expr, part.type))
        elif isinstance(part, HeaderPlace) and not covered.isdisjoint(footprint(part)):
            kept = self.scope.temporary(part.type)
            self.assign(kept, part)
            return kept
        return part

    def _assign_header(self, target: Place, source: Place) -> None:
        if isinstance(target, LastHeader):
            target = self.comparisons.last_as_header(target)
        assert isinstance(target, HeaderPlace)
        if isinstance(source, LastHeader):
            source = self.comparisons.last_as_header(source)
        if isinstance(source, InvalidPlace):
            self.scope.emit("remove_header", target.expr)
        elif isinstance(source, HeaderPlace):
            if source.expr != target.expr:
                self.scope.emit("assign_header", target.expr, source.expr)
        else:
            assert isinstance(source, StructPlace), source
            given = self.detached(target, source)
            self.scope.emit("add_header", target.expr)
            for to, part in zip(target.fields(), given, strict=True):
                self.assign(to, part)

    def _assign_stack(self, target: StackPlace, source: Place) -> None:
        if isinstance(source, StackPlace):
            op = "assign_union_stack" if target.of_unions else "assign_header_stack"
            if source.name != target.name:
                self.scope.emit(op, target.expr, source.expr)
            return
        assert isinstance(source, StructPlace), source
        for to, part in zip(target.elements, self.detached(target, source), strict=True):
            self.assign(to, part)

    def _assign_union(self, target: UnionPlace, source: Place) -> None:
        if isinstance(source, UnionPlace):
            if source.expr != target.expr:
                self.scope.emit("assign_union", target.expr, source.expr)
        elif isinstance(source, InvalidPlace):
            for member in target.members.values():
                self.assign(member, InvalidPlace(member.type))
        else:
            raise self.scope.unsupported(_at(self.scope), "this assignment to a header union")

    def invalidate(self, place: Place) -> None:
        """Makes all headers in `place` invalid. This happens to `out` parameters when a block is
        entered (section 6.8)."""
        if isinstance(place, HeaderPlace):
            self.scope.emit("remove_header", place.expr)
        elif isinstance(place, StructPlace):
            for member in place.members.values():
                self.invalidate(member)
        elif isinstance(place, StackPlace):
            for element in place.elements:
                self.invalidate(element)
        elif isinstance(place, UnionPlace):
            for member in place.members.values():
                self.invalidate(member)
        elif isinstance(place, SelectedPlace):
            self.expressions.select_code(place, self.invalidate, [])

    def output(self, expression: ast.Expression) -> tuple[ir.Expr, Place | None]:
        """Returns a field to which an extern can write a scalar. If the real target is not a field,
        also returns that target, for deliver()."""
        target = self.expressions.place(expression, freeze=True)
        if isinstance(target, Scalar) and isinstance(target.ref, ir.FieldRef):
            return target.ref, None
        temporary = self.scope.temporary(target.type)
        assert isinstance(temporary, Scalar)
        return temporary.ref, target

    def deliver(self, ref: ir.Expr, target: Place | None) -> None:
        """Copies the field that output() returned to the real target. Does nothing if `target` is
        None, because the field is then the real target."""
        if target is None:
            return
        boolean = isinstance(plain(target.type), types.Boolean)
        self.store(target, arithmetic.as_boolean(ref) if boolean else ref)


def _at(scope: Scope) -> ast.Node:
    return ast.Node(scope.position)


def _reads_validity(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.FieldRef):
        return expr.field == "$valid$"
    return isinstance(expr, ir.Op) and expr.op in ("valid", "valid_union")
