"""Translates expressions to C.

BMv2 computes with integers of unbounded size and cuts them when it stores them. Here, a value of
which only 64 bits are needed is computed modulo 2^64 in a uint64_t (`u64`). Other values are
computed modulo 2^(64 n) in n limbs (`limbs`). This is enough for `+ - * & | ^ ~ <<`, whose low bits
depend only on low bits. Operators that need the whole value (`/ % >>`, comparisons, saturation) use
as many limbs as ranges.py says the value may have.
"""

from __future__ import annotations

from p4native.switch.bmv2_json.expressions import header_type_of
from p4native.switch.expression import (
    Arithmetic,
    Bool,
    BoolConstant,
    BoolToData,
    ChooseBool,
    ChooseData,
    Compare,
    Complement,
    Const,
    Data,
    DataToBool,
    FieldOf,
    Local,
    Logic,
    Lookahead,
    Not,
    RegisterCell,
    SameHeader,
    SameUnion,
    SameVariable,
    StackCount,
    Valid,
    ValidUnion,
)
from p4native.switch.model import Param
from p4native.switch.translate.header_access import HeaderAccess
from p4native.switch.translate.layout import Layout, integer_type
from p4native.switch.translate.ranges import Range, Ranges, Text, amounts, check_size
from p4native.switch.translate.wide import Wide
from p4native.switch.translate.writer import Writer, access, u64


class Expressions:
    """A writer of expressions into `out`. params: the parameters of the action that is being
    written."""

    def __init__(self, layout: Layout, out: Writer, params: tuple[Param, ...] = ()) -> None:
        self.layout = layout
        self.out = out
        self.params = params
        self.ranges = Ranges()
        self.header_access = HeaderAccess(layout, out, self)
        self.wide = Wide(self)

    def argument_offset(self, index: int) -> int:
        return sum(p.bytes for p in self.params[:index])

    def exact(self, data: Data) -> Range:
        """Returns the range of a value all of whose bits are needed. Refuses a value that is too
        large."""
        return check_size(data, self.ranges.of(data))

    def u64(self, data: Data) -> str:
        """Returns a C expression of type uint64_t for the value modulo 2^64."""
        if isinstance(data, Const):
            return u64(data.value)
        if isinstance(data, Text):
            return f"(uint64_t){data.text}"
        if isinstance(data, FieldOf):
            return self.field(data)
        if isinstance(data, Local):
            return self.argument(data)
        if isinstance(data, RegisterCell):
            return self.register(data)
        if isinstance(data, Lookahead):
            return self.lookahead(data)
        if isinstance(data, BoolToData):
            return f"({self.boolean(data.value)} ? UINT64_C(1) : 0)"
        if isinstance(data, StackCount):
            return f"(uint64_t)({self.layout.next(data.stack)} - UINT64_C({data.minus}))"
        if isinstance(data, ChooseData):
            condition = self.boolean(data.condition)
            return f"({condition} ? {self.u64(data.yes)} : {self.u64(data.no)})"
        if isinstance(data, Complement):
            return f"(~{self.u64(data.value)})"
        assert isinstance(data, Arithmetic)
        return self.arithmetic(data)

    def field(self, data: FieldOf) -> str:
        pointer = self.header_access.read(data.header)
        if data.field is None:
            return f"(uint64_t){access(pointer, 'valid')}"
        member = access(pointer, self.layout.field(header_type_of(data.header), data.field))
        if data.field.wide:
            return f"wide_slice({member}, {data.field.bytes}, 0)"
        text = f"(uint64_t){member}"
        return f"sign_extend({text}, {data.field.bits})" if data.field.signed else text

    def argument(self, data: Local) -> str:
        offset = self.argument_offset(data.index)
        size = (data.bits + 7) // 8
        if size <= 8:
            return f"load_be(args + {offset}, {size})"
        return f"wide_slice(args + {offset}, {size}, 0)"

    def register(self, data: RegisterCell) -> str:
        index, checked = self.register_index(data)
        cell = self.cell(data, index)
        if data.register.bits > 64:
            value = f"wide_slice({cell}, {data.register.bytes}, 0)"
        else:
            value = f"(uint64_t)*({integer_type(data.register.bits)} *){cell}"
        return value if checked else f"({index} < {data.register.size} ? {value} : 0)"

    def register_index(self, data: RegisterCell) -> tuple[str, bool]:
        """Returns a variable with the index, and whether the index is known to lie in the array."""
        found = self.ranges.of(data.index)
        if isinstance(data.index, Text) and found.high < data.register.size:
            return data.index.text, True
        index = self.out.temporary("i")
        self.out.line(f"uint64_t {index} = {self.u64(data.index)};")
        return index, False

    def cell(self, data: RegisterCell, index: str) -> str:
        place = self.layout.register_places[data.register]
        return f"(register_element(p, {place.group}, {index}) + {place.offset})"

    def lookahead(self, data: Lookahead) -> str:
        """Returns C for a lookahead. The parser has already checked that the packet is long
        enough."""
        if data.bits <= 64:
            return f"load_bits(frame + at, {data.offset}, {data.bits})"
        return f"load_bits(frame + at, {data.offset + data.bits - 64}, 64)"

    def arithmetic(self, data: Arithmetic) -> str:
        if data.op in "+-*&|^":
            return f"({self.u64(data.left)} {data.op} {self.u64(data.right)})"
        if data.op == "<<":
            return self.shift_left(data)
        if data.op == ">>":
            return self.shift_right(data)
        if data.op in "/%":
            return self.divide(data)
        if data.op == "two_comp_mod":
            assert isinstance(data.right, Const)
            text = self.u64(data.left)
            bits = data.right.value
            return f"sign_extend({text}, {bits})" if bits < 64 else text
        return self.saturate(data)

    def shift_left(self, data: Arithmetic) -> str:
        left = self.u64(data.left)
        if isinstance(data.right, Const):
            amount = data.right.value % (1 << 32)
            return f"({left} << {amount})" if amount < 64 else "UINT64_C(0)"
        return f"shift_left({left}, (uint32_t){self.u64(data.right)})"

    def shift_right(self, data: Arithmetic) -> str:
        left = self.exact(data.left)
        if not left.fits64:
            return self.wide.shift_right_low(data)
        value = self.u64(data.left)
        least, most = amounts(self.ranges.of(data.right))
        if left.unsigned64:
            if isinstance(data.right, Const):
                return f"({value} >> {least})" if most < 64 else "UINT64_C(0)"
            return f"shift_right({value}, (uint32_t){self.u64(data.right)})"
        return f"shift_right_signed({value}, (uint32_t){self.u64(data.right)})"

    def divide(self, data: Arithmetic) -> str:
        left, right = self.exact(data.left), self.exact(data.right)
        name = "divide" if data.op == "/" else "modulo"
        if left.unsigned64 and right.unsigned64:
            return f"{name}({self.u64(data.left)}, {self.u64(data.right)})"
        if left.signed64 and right.signed64:
            return f"{name}_signed({self.u64(data.left)}, {self.u64(data.right)})"
        return f"{self.wide.divide(data, 1)}[0]"

    def saturate(self, data: Arithmetic) -> str:
        left = self.exact(data.left)
        assert isinstance(data.right, Const)
        bits = data.right.value
        low = -(1 << bits - 1) if data.op == "sat_cast" else 0
        high = (1 << bits - 1) - 1 if data.op == "sat_cast" else (1 << bits) - 1
        limits = Range(low, high)
        if not (left.fits64 and limits.fits64):
            return f"{self.wide.saturate(data, 1)}[0]"
        value = self.out.temporary()
        self.out.line(f"uint64_t {value} = {self.u64(data.left)};")
        if left.low < low:
            self.out.line(f"if ((int64_t){value} < (int64_t){u64(low)})")
            self.out.line(f"\t{value} = {u64(low)};")
        if left.high > high:
            cast = "(int64_t)" if left.signed64 else ""
            guard = f"(int64_t){value} >= 0 && " if left.low < 0 else ""
            self.out.line(f"if ({guard}{cast}{value} > {cast}{u64(high)})")
            self.out.line(f"\t{value} = {u64(high)};")
        return value

    def boolean(self, data: Bool) -> str:
        """Returns a C truth value in parentheses, or a name."""
        if isinstance(data, BoolConstant):
            return "true" if data.value else "false"
        if isinstance(data, DataToBool):
            return self.compare("!=", data.value, Const(data.path, 0))
        if isinstance(data, Compare):
            return self.compare(data.op, data.left, data.right)
        if isinstance(data, Logic):
            op = {"and": "&&", "or": "||"}.get(data.op, data.op)
            return f"({self.boolean(data.left)} {op} {self.boolean(data.right)})"
        if isinstance(data, Not):
            return f"(!{self.boolean(data.value)})"
        if isinstance(data, ChooseBool):
            condition = self.boolean(data.condition)
            return f"({condition} ? {self.boolean(data.yes)} : {self.boolean(data.no)})"
        if isinstance(data, Valid):
            return access(self.header_access.read(data.header), "valid")
        if isinstance(data, ValidUnion):
            members = self.header_access.union_members(data.union)
            return self.any(access(self.header_access.read(m), "valid") for m in members)
        if isinstance(data, SameHeader):
            return self.same_header(data)
        if isinstance(data, SameVariable):
            return f"same_number({self.variable(data.left)}, {self.variable(data.right)})"
        assert isinstance(data, SameUnion)
        left, right = (self.header_access.union_members(u) for u in (data.left, data.right))
        pairs = zip(left, right, strict=True)
        return self.any(self.same_header(SameHeader(data.path, a, b)) for a, b in pairs)

    def any(self, parts: object) -> str:
        return f"({' || '.join(parts)})"  # type: ignore[arg-type]

    def same_header(self, data: SameHeader) -> str:
        types = header_type_of(data.left), header_type_of(data.right)
        if types[0] is not types[1]:
            return "false"
        left, right = self.header_access.read(data.left), self.header_access.read(data.right)
        return f"same_{self.layout.types[types[0].name]}({left}, {right})"

    def variable(self, data: FieldOf) -> str:
        """Returns the pointer and the length of a field of variable width."""
        assert data.field
        header_type = header_type_of(data.header)
        pointer = self.header_access.read(data.header)
        names = self.layout.field, self.layout.length
        return ", ".join(access(pointer, name(header_type, data.field)) for name in names)

    def compare(self, op: str, left: Data, right: Data) -> str:
        ranges = self.exact(left), self.exact(right)
        if all(r.unsigned64 for r in ranges):
            return f"({self.u64(left)} {op} {self.u64(right)})"
        if all(r.signed64 for r in ranges):
            return f"((int64_t){self.u64(left)} {op} (int64_t){self.u64(right)})"
        return self.wide.compare(op, left, right, max(r.limbs for r in ranges))
