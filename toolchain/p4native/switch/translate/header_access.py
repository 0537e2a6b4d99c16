"""Translates header expressions to C: to pointers for reading, and to targets that are changed
under a condition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from p4native.switch.bmv2_json.expressions import header_type_of, sample_union
from p4native.switch.expression import (
    ChooseHeader,
    Data,
    HeaderExpression,
    HeaderRef,
    LastElement,
    LastUnion,
    StackElement,
    UnionElement,
    UnionExpression,
    UnionMember,
    UnionRef,
)
from p4native.switch.storage import HeaderType, Stack, UnionStack
from p4native.switch.translate.layout import Layout, Place
from p4native.switch.translate.narrow import ScalarExpressions
from p4native.switch.translate.writer import Writer, access


class HeaderAccess:
    """A writer of the code that finds headers. An element outside its stack is read as zero_<type>,
    and changes to it do nothing."""

    def __init__(self, layout: Layout, out: Writer, expressions: ScalarExpressions) -> None:
        self.layout = layout
        self.out = out
        self.expressions = expressions

    def type_name(self, header_type: HeaderType) -> str:
        return self.layout.types[header_type.name]

    def read(self, header: HeaderExpression) -> str:
        """Returns a C pointer to the header for reading. The pointer is valid until the packet
        changes."""
        if isinstance(header, HeaderRef):
            return self.layout.place(header.header).header
        header_type = header_type_of(header)
        name = self.type_name(header_type)
        temporary = self.out.temporary("h")
        if isinstance(header, ChooseHeader):
            condition = self.expressions.boolean(header.condition)
            value = f"{condition} ? {self.read(header.yes)} : {self.read(header.no)}"
        elif isinstance(header, UnionMember) and isinstance(header.union, UnionRef):
            return self.layout.place(header.union.union.headers[header.member]).header
        else:
            array, index, size = self.element(header)
            value = f"{index} < {size} ? &k->{array}[{index}] : &zero_{name}"
        self.out.line(f"const struct t_{name} *{temporary} = {value};")
        return temporary

    def element(self, header: HeaderExpression) -> tuple[str, str, int]:
        """Returns (array, variable with the index, size of the array) of an element found at run
        time."""
        if isinstance(header, StackElement | LastElement):
            stack = header.stack
            array = self.layout.stacks[stack]
            data = header.index if isinstance(header, StackElement) else None
            return array, self.index(stack, data), len(stack.headers)
        assert isinstance(header, UnionMember)
        stack_of, index = self.union_element(header.union)
        return self.layout.union_member(stack_of, header.member), index, len(stack_of.unions)

    def union_element(self, union: UnionExpression) -> tuple[UnionStack, str]:
        assert isinstance(union, UnionElement | LastUnion)
        data = union.index if isinstance(union, UnionElement) else None
        return union.stack, self.index(union.stack, data)

    def index(self, stack: Stack | UnionStack, data: Data | None) -> str:
        """Returns a C variable with the index. If `data` is None, it is the index of the last
        element. In an empty stack, that index lies outside the stack."""
        text = self.expressions.u64(data) if data else f"{self.layout.next(stack)} - UINT64_C(1)"
        temporary = self.out.temporary("i")
        self.out.line(f"uint64_t {temporary} = {text};")
        return temporary

    @contextmanager
    def change(self, header: HeaderExpression) -> Iterator[Place]:
        """Writes the condition under which a header exists, if there is one, around the code of the
        `with` block. Yields the header, which this code may change."""
        place, guard = self.target(header)
        if guard is None:
            yield place
        else:
            with self.out.block(f"if ({guard})"):
                yield place

    def target(self, header: HeaderExpression) -> tuple[Place, str | None]:
        """Returns the C expression of a header and the condition under which it exists."""
        if isinstance(header, HeaderRef):
            return self.layout.place(header.header), None
        if isinstance(header, UnionMember) and isinstance(header.union, UnionRef):
            return self.layout.place(header.union.union.headers[header.member]), None
        array, index, size = self.element(header)
        place = self.layout.place_of(f"{array}[{index}]", header_type_of(header))
        return place, f"{index} < {size}"

    def siblings(self, header: HeaderExpression, place: Place) -> list[str]:
        """Returns the other members of the union to which a header belongs, as C lvalues."""
        if isinstance(header, HeaderRef):
            union = header.header.union
            others = [h for h in union.headers if h is not header.header] if union else []
            return [f"k->{self.layout.member(h)}" for h in others]
        if not isinstance(header, UnionMember):
            return []
        union_headers = sample_union(header.union).headers
        if isinstance(header.union, UnionRef):
            return [
                f"k->{self.layout.member(h)}"
                for i, h in enumerate(union_headers)
                if i != header.member
            ]
        assert isinstance(header.union, UnionElement | LastUnion)
        index = place.header[place.header.index("[") :]
        return [
            f"k->{self.layout.union_member(header.union.stack, i)}{index}"
            for i in range(len(union_headers))
            if i != header.member
        ]

    def mark_valid(self, header: HeaderExpression, place: Place) -> None:
        """Writes code that makes a header valid and the other members of its union invalid."""
        self.out.line(f"{access(place.header, 'valid')} = true;")
        for other in self.siblings(header, place):
            self.out.line(f"{other}.valid = false;")

    def union_members(self, union: UnionExpression) -> list[HeaderExpression]:
        """Returns expressions for all members of a union."""
        count = len(sample_union(union).headers)
        return [UnionMember(union.path, union, i) for i in range(count)]
