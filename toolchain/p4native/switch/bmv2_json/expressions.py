"""Reads expressions: makes a type-checked tree of nested {"type", "value"} objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from p4native.switch.bmv2_json.scope import Scope
from p4native.switch.expression import (
    Arithmetic,
    Bool,
    BoolConstant,
    BoolToData,
    ChooseBool,
    ChooseData,
    ChooseHeader,
    Compare,
    Complement,
    Const,
    Data,
    DataToBool,
    Expression,
    FieldOf,
    HeaderExpression,
    HeaderRef,
    LastElement,
    LastUnion,
    Local,
    Logic,
    Lookahead,
    Not,
    RegisterCell,
    SameHeader,
    SameUnion,
    SameVariable,
    StackCount,
    StackElement,
    StackRef,
    UnionElement,
    UnionExpression,
    UnionMember,
    UnionRef,
    UnionStackRef,
    Valid,
    ValidUnion,
)
from p4native.switch.model import Param
from p4native.switch.node import Node
from p4native.switch.storage import HeaderType, Union

MAX_DEPTH = 150
MAX_CAST_BITS = 16384

E = TypeVar("E", bound=Expression)

ARITHMETIC = frozenset(["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"])
CASTS = frozenset(("two_comp_mod", "usat_cast", "sat_cast"))
ORDER = frozenset(["<", "<=", ">", ">="])
KINDS: dict[type, str] = {
    Data: "a number",
    FieldOf: "a field",
    Bool: "a truth value",
    HeaderExpression: "a header",
    UnionExpression: "a header union",
    StackRef: "a header stack",
    UnionStackRef: "a header union stack",
}


def is_variable(data: Expression) -> bool:
    return isinstance(data, FieldOf) and data.field is not None and data.field.variable


def header_type_of(header: HeaderExpression) -> HeaderType:
    """Returns the type of the header that the expression yields. Every header that the expression
    may yield has this type."""
    if isinstance(header, HeaderRef):
        return header.header.type
    if isinstance(header, StackElement | LastElement):
        return header.stack.type
    if isinstance(header, UnionMember):
        return sample_union(header.union).headers[header.member].type
    assert isinstance(header, ChooseHeader)
    return header_type_of(header.yes)


def sample_union(union: UnionExpression) -> Union:
    """Returns one of the unions that the expression may yield, as an example of their type."""
    if isinstance(union, UnionRef):
        return union.union
    assert isinstance(union, UnionElement | LastUnion)
    return union.stack.unions[0]


class Reader:
    """A reader of expressions. params: the parameters of the action that contains the
    expressions."""

    def __init__(
        self, scope: Scope, params: tuple[Param, ...] = (), in_parser: bool = False
    ) -> None:
        self.scope = scope
        self.params = params
        self.in_parser = in_parser
        self.depth = 0

    def data(self, node: Node) -> Data:
        return self.expect(node, Data)

    def boolean(self, node: Node) -> Bool:
        return self.expect(node, Bool)

    def variable_field(self, node: Node) -> FieldOf:
        """Reads a field of variable width, which has no value as a number."""
        found = self.expect(node, FieldOf)
        if not is_variable(found):
            raise node.error("must be a field of variable width")
        return found

    def lvalue(self, node: Node) -> FieldOf | RegisterCell:
        """Reads an expression that can be assigned to."""
        found = self.data(node)
        if isinstance(found, RegisterCell):
            return found
        if not isinstance(found, FieldOf) or found.field is None:
            raise node.error("cannot be assigned to")
        if isinstance(found.header, ChooseHeader):
            raise node.error("cannot be assigned to: '?' chooses the header")
        return found

    def header(self, node: Node) -> HeaderExpression:
        return self.expect(node, HeaderExpression)

    def changed_header(self, node: Node) -> HeaderExpression:
        """Reads a header that a primitive changes."""
        found = self.header(node)
        if isinstance(found, ChooseHeader):
            raise node.error("cannot be changed: '?' chooses the header")
        return found

    def union(self, node: Node) -> UnionExpression:
        return self.expect(node, UnionExpression)

    def expect(self, node: Node, kind: type[E]) -> E:
        found = self.read(node)
        if not isinstance(found, kind):
            raise node.error(f"must be {KINDS[kind]}")
        if kind is Data and is_variable(found):
            raise node.error("a field of variable width cannot be used here")
        return found

    def read(self, node: Node) -> Expression:
        """Reads an expression of any kind."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise node.error(f"is nested more than {MAX_DEPTH} deep")
        try:
            kind = node["type"].text()
            reader = READERS.get(kind)
            if reader is None:
                raise node["type"].error(f"'{kind}' is not a kind of expression")
            return reader(self, node["value"])
        finally:
            self.depth -= 1

    def read_expression(self, node: Node) -> Expression:
        if "type" in node.members():
            return self.read(node)
        op = node["op"].text()
        special = OPERATORS.get(op)
        if special is not None:
            return special(self, node)
        if op in ("==", "!="):
            return self.read_equality(node, op)
        if op in ORDER:
            return Compare(node.path, op, self.data(node["left"]), self.data(node["right"]))
        if op in ARITHMETIC:
            return self.read_arithmetic(node, op)
        if op in CASTS:
            return self.read_cast(node, op)
        raise node["op"].error(f"'{op}' is not an operation")

    def read_arithmetic(self, node: Node, op: str) -> Data:
        left = node.get("left")
        if left is None and op not in "+-":
            raise node["left"].error("is missing")
        first = self.data(left) if left else Const(node.path, 0)
        return Arithmetic(node.path, op, first, self.data(node["right"]))

    def read_cast(self, node: Node, op: str) -> Data:
        width = self.data(node["right"])
        if not isinstance(width, Const) or not 1 <= width.value <= MAX_CAST_BITS:
            raise node["right"].error(f"the width must be a constant, 1 to {MAX_CAST_BITS}")
        return Arithmetic(node.path, op, self.data(node["left"]), width)

    def read_equality(self, node: Node, op: str) -> Bool:
        left, right = self.read(node["left"]), self.read(node["right"])
        path = node.path
        variable = [is_variable(x) for x in (left, right)]
        if any(variable):
            if not all(variable):
                raise node["right"].error("must be of variable width like the left side, or not")
            same_number = SameVariable(path, left, right)  # type: ignore[arg-type]
            return same_number if op == "==" else Not(path, same_number)
        if isinstance(left, Data) and isinstance(right, Data):
            return Compare(path, op, left, right)
        if isinstance(left, Bool) and isinstance(right, Bool):
            return Logic(path, op, left, right)
        same: Bool
        if isinstance(left, HeaderExpression) and isinstance(right, HeaderExpression):
            same = SameHeader(path, left, right)
        elif isinstance(left, UnionExpression) and isinstance(right, UnionExpression):
            same = SameUnion(path, left, right)
            if len(sample_union(left).headers) != len(sample_union(right).headers):
                raise node["right"].error("must be a union of the same type as the left side")
        else:
            raise node["right"].error(f"cannot be compared ('{op}') with the left side")
        return same if op == "==" else Not(path, same)

    def read_choice(self, node: Node) -> Expression:
        condition = self.boolean(node["cond"])
        yes, no = self.read(node["left"]), self.read(node["right"])
        if is_variable(yes) or is_variable(no):
            raise node.error("a field of variable width cannot be used here")
        if isinstance(yes, Data) and isinstance(no, Data):
            return ChooseData(node.path, condition, yes, no)
        if isinstance(yes, Bool) and isinstance(no, Bool):
            return ChooseBool(node.path, condition, yes, no)
        headers = isinstance(yes, HeaderExpression) and isinstance(no, HeaderExpression)
        if headers and header_type_of(yes) is header_type_of(no):  # type: ignore[arg-type]
            return ChooseHeader(node.path, condition, yes, no)  # type: ignore[arg-type]
        raise node["right"].error("must be of the same kind as the other choice")

    def read_access_field(self, node: Node) -> Data:
        header = self.header(node["left"])
        fields = header_type_of(header).fields
        index = node["right"].integer(0, len(fields))
        return FieldOf(node.path, header, fields[index] if index < len(fields) else None)

    def read_access_union(self, node: Node) -> HeaderExpression:
        union = self.union(node["left"])
        last = len(sample_union(union).headers) - 1
        return UnionMember(node.path, union, node["right"].integer(0, last))

    def stack_count(self, node: Node, minus: int) -> Data:
        stack = self.read(node["right"])
        if not isinstance(stack, StackRef | UnionStackRef):
            raise node["right"].error("must be a header stack")
        return StackCount(node.path, stack.stack, minus)

    def field(self, node: Node) -> FieldOf:
        """Reads a [header, field] pair as a value."""
        header_node, field_node = node.elements(2)
        header = self.scope.header(header_node)
        found = self.scope.field_of(field_node, header.type)
        return FieldOf(node.path, HeaderRef(node.path, header), found)

    def stack_field(self, node: Node) -> FieldOf:
        stack_node, field_node = node.elements(2)
        stack = self.scope.stack(stack_node)
        found = self.scope.field_of(field_node, stack.type)
        return FieldOf(node.path, LastElement(node.path, stack), found)

    def union_stack_field(self, node: Node) -> FieldOf:
        stack_node, member_node, field_node = node.elements(3)
        stack = self.scope.union_stack(stack_node)
        member = member_of(stack.unions[0], member_node)
        header = UnionMember(node.path, LastUnion(node.path, stack), member)
        found = self.scope.field_of(field_node, header_type_of(header))
        return FieldOf(node.path, header, found)

    def register_cell(self, node: Node) -> Data:
        name, index = node.elements(2)
        register = self.scope.find(name, "register", self.scope.registers)
        return RegisterCell(node.path, register, self.data(index))

    def local(self, node: Node) -> Data:
        if not self.params:
            raise node.error("no action parameters exist here")
        index = node.integer(0, len(self.params) - 1)
        return Local(node.path, index, self.params[index].bits)

    def lookahead(self, node: Node) -> Data:
        if not self.in_parser:
            raise node.error("'lookahead' exists in parsers only")
        offset, bits = node.elements(2)
        return Lookahead(node.path, offset.integer(0, 2**19), bits.integer(1, MAX_CAST_BITS))


def member_of(union: Union, node: Node) -> int:
    """Returns the position of the union's member that `node` names."""
    if node.text() not in union.member_names:
        raise node.error(f"no member is called '{node.text()}'")
    return union.member_names.index(node.text())


READERS: dict[str, Callable[[Reader, Node], Expression]] = {
    "expression": Reader.read_expression,
    "field": Reader.field,
    "hexstr": lambda r, n: Const(n.path, n.hex_integer()),
    "bool": lambda r, n: BoolConstant(n.path, n.boolean()),
    "local": Reader.local,
    "runtime_data": Reader.local,
    "register": Reader.register_cell,
    "stack_field": Reader.stack_field,
    "union_stack_field": Reader.union_stack_field,
    "lookahead": Reader.lookahead,
    "header": lambda r, n: HeaderRef(n.path, r.scope.header(n)),
    "header_stack": lambda r, n: StackRef(n.path, r.scope.stack(n)),
    "header_union": lambda r, n: UnionRef(n.path, r.scope.union(n)),
    "header_union_stack": lambda r, n: UnionStackRef(n.path, r.scope.union_stack(n)),
}

OPERATORS: dict[str, Callable[[Reader, Node], Expression]] = {
    "?": Reader.read_choice,
    "~": lambda r, n: Complement(n.path, r.data(n["right"])),
    "not": lambda r, n: Not(n.path, r.boolean(n["right"])),
    "and": lambda r, n: Logic(n.path, "and", r.boolean(n["left"]), r.boolean(n["right"])),
    "or": lambda r, n: Logic(n.path, "or", r.boolean(n["left"]), r.boolean(n["right"])),
    "d2b": lambda r, n: DataToBool(n.path, r.data(n["right"])),
    "b2d": lambda r, n: BoolToData(n.path, r.boolean(n["right"])),
    "valid": lambda r, n: Valid(n.path, r.header(n["right"])),
    "valid_union": lambda r, n: ValidUnion(n.path, r.union(n["right"])),
    "access_field": Reader.read_access_field,
    "access_union_header": Reader.read_access_union,
    "last_stack_index": lambda r, n: r.stack_count(n, 1),
    "size_stack": lambda r, n: r.stack_count(n, 0),
    "dereference_stack": lambda r, n: StackElement(
        n.path, r.expect(n["left"], StackRef).stack, r.data(n["right"])
    ),
    "dereference_header_stack": lambda r, n: StackElement(
        n.path, r.expect(n["left"], StackRef).stack, r.data(n["right"])
    ),
    "dereference_union_stack": lambda r, n: UnionElement(
        n.path, r.expect(n["left"], UnionStackRef).stack, r.data(n["right"])
    ),
}
