"""Translates values wider than 64 bits. Values with which the program computes become limbs. Values
that are only moved, masked, compared or added in lanes stay big-endian bytes."""

from __future__ import annotations

from p4native.switch.bmv2_json.expressions import header_type_of
from p4native.switch.expression import (
    Arithmetic,
    ChooseData,
    Complement,
    Const,
    Data,
    FieldOf,
    Local,
    Lookahead,
    RegisterCell,
)
from p4native.switch.translate.narrow import NarrowExpressions
from p4native.switch.translate.patterns import LaneAdd, lane_add, strip_masks
from p4native.switch.translate.writer import access, u64

BITWISE = frozenset("&|^")


class Wide:
    """A writer of wide values. Narrower values are left to Expressions."""

    def __init__(self, expressions: NarrowExpressions) -> None:
        self.expressions = expressions
        self.out = expressions.out
        self.layout = expressions.layout

    # ---- limbs

    def limbs(self, data: Data, count: int) -> str:
        """Returns the name of an array of at least `count` limbs that holds the value modulo 2^(64
        count)."""
        if self.expressions.ranges.of(data).fits64:
            return self.extend(data, count)
        if isinstance(data, Const):
            return self.constant(data.value, count)
        if isinstance(data, FieldOf | RegisterCell | Local | Lookahead):
            return self.load(data, count)
        if isinstance(data, ChooseData):
            return self.choose(data, count)
        if isinstance(data, Complement):
            inner = self.limbs(data.value, count)
            name = self.array(count)
            self.each(f"{name}[i] = ~{inner}[i];", count)
            return name
        assert isinstance(data, Arithmetic)
        return self.arithmetic(data, count)

    def array(self, count: int) -> str:
        name = self.out.temporary("w")
        self.out.array(name, count, "uint64_t")
        return name

    def each(self, statement: str, count: int) -> None:
        self.out.line(f"for (unsigned int i = 0; i < {count}; i++)")
        self.out.line(f"\t{statement}")

    def extend(self, data: Data, count: int) -> str:
        low = self.out.temporary()
        self.out.line(f"uint64_t {low} = {self.expressions.u64(data)};")
        name = self.array(count)
        negative = f"{low} >> 63" if self.expressions.ranges.of(data).low < 0 else "false"
        self.out.line(f"wide_set({name}, {count}, {low}, {negative});")
        return name

    def constant(self, value: int, count: int) -> str:
        name = self.out.temporary("c")
        parts = ", ".join(u64(value >> 64 * i) for i in range(count))
        self.out.line(f"static const uint64_t {name}[{count}] = {{{parts}}};")
        return name

    def load(self, data: FieldOf | RegisterCell | Local | Lookahead, count: int) -> str:
        source, bits = self.leaf(data)
        name = self.array(count)
        self.out.line(f"wide_load({name}, {count}, {source}, {(bits + 7) // 8});")
        if isinstance(data, FieldOf) and data.field and data.field.signed:
            self.out.line(f"wide_sign_extend({name}, {count}, {bits});")
        return name

    def choose(self, data: ChooseData, count: int) -> str:
        name = self.array(count)
        condition = self.expressions.boolean(data.condition)
        for head, value in ((f"if ({condition})", data.yes), ("else", data.no)):
            with self.out.block(head):
                inner = self.limbs(value, count)
                self.out.line(f"memcpy({name}, {inner}, sizeof({name}));")
        return name

    def arithmetic(self, data: Arithmetic, count: int) -> str:
        special = {
            "<<": self.shift_left,
            ">>": self.shift_right,
            "/": self.divide,
            "%": self.divide,
            "two_comp_mod": self.two_comp_mod,
            "usat_cast": self.saturate,
            "sat_cast": self.saturate,
        }
        if data.op in special:
            return special[data.op](data, count)
        left, right = self.limbs(data.left, count), self.limbs(data.right, count)
        name = self.array(count)
        if data.op in BITWISE:
            self.each(f"{name}[i] = {left}[i] {data.op} {right}[i];", count)
        else:
            call = {"+": "wide_add", "-": "wide_sub", "*": "wide_mul"}[data.op]
            self.out.line(f"{call}({name}, {left}, {right}, {count});")
        return name

    def shift_left(self, data: Arithmetic, count: int) -> str:
        left = self.limbs(data.left, count)
        amount = f"(uint32_t){self.expressions.u64(data.right)}"
        name = self.array(count)
        self.out.line(f"wide_shift_left({name}, {left}, {amount}, {count});")
        return name

    def shift_right(self, data: Arithmetic, count: int) -> str:
        count = max(count, self.expressions.exact(data.left).limbs)
        left = self.limbs(data.left, count)
        name = self.array(count)
        amount = f"(uint32_t){self.expressions.u64(data.right)}"
        self.out.line(f"wide_shift_right({name}, {left}, {amount}, {count});")
        return name

    def shift_right_low(self, data: Arithmetic) -> str:
        """Returns the lowest 64 bits of a shift to the right, directly from a field's bytes if
        possible."""
        left, amount = data.left, data.right
        plain = isinstance(left, FieldOf) and left.field and not left.field.signed
        if plain and isinstance(amount, Const) and 0 <= amount.value < 1 << 32:
            source, bits = self.leaf(left)  # type: ignore[arg-type]
            return f"wide_slice({source}, {(bits + 7) // 8}, {amount.value})"
        return f"{self.shift_right(data, 1)}[0]"

    def divide(self, data: Arithmetic, count: int) -> str:
        exact = self.expressions.exact
        count = max(count, exact(data.left).limbs, exact(data.right).limbs)
        left, right = self.limbs(data.left, count), self.limbs(data.right, count)
        name = self.array(count)
        remainder = "true" if data.op == "%" else "false"
        self.out.line(f"wide_divide({name}, {left}, {right}, {count}, {remainder});")
        return name

    def two_comp_mod(self, data: Arithmetic, count: int) -> str:
        assert isinstance(data.right, Const)
        bits = data.right.value
        count = max(count, (bits + 63) // 64)
        inner = self.limbs(data.left, count)
        name = self.array(count)
        self.out.line(f"memcpy({name}, {inner}, sizeof({name}));")
        self.out.line(f"wide_sign_extend({name}, {count}, {bits});")
        return name

    def saturate(self, data: Arithmetic, count: int) -> str:
        assert isinstance(data.right, Const)
        bits = data.right.value
        signed = data.op == "sat_cast"
        low = -(1 << bits - 1) if signed else 0
        high = (1 << bits - signed) - 1
        count = max(count, self.expressions.exact(data.left).limbs, bits // 64 + 1)
        inner = self.limbs(data.left, count)
        name = self.array(count)
        self.out.line(f"memcpy({name}, {inner}, sizeof({name}));")
        for limit, relation in ((low, "<"), (high, ">")):
            constant = self.constant(limit, count)
            self.out.line(f"if (wide_compare({name}, {constant}, {count}) {relation} 0)")
            self.out.line(f"\tmemcpy({name}, {constant}, sizeof({name}));")
        return name

    def compare(self, op: str, left: Data, right: Data, count: int) -> str:
        if op in ("==", "!="):
            bits = max(self.plain_bits(left), self.plain_bits(right))
            if self.plain_bits(left) and self.plain_bits(right):
                same_size = all(
                    isinstance(d, Const) or (self.plain_bits(d) + 7) // 8 == (bits + 7) // 8
                    for d in (left, right)
                )
                if same_size:
                    size = (bits + 7) // 8
                    pair = f"{self.bytes(left, bits)}, {self.bytes(right, bits)}"
                    return f"(memcmp({pair}, {size}) {op} 0)"
        first, second = self.limbs(left, count), self.limbs(right, count)
        return f"(wide_compare({first}, {second}, {count}) {op} 0)"

    def plain_bits(self, data: Data) -> int:
        """Returns the width of a wide field, register or argument, or of a constant, that is never
        negative. Returns 0 for other data."""
        if isinstance(data, Const):
            return max(data.value.bit_length(), 1) if data.value >= 0 else 0
        if isinstance(data, FieldOf):
            plain = data.field and data.field.wide and not data.field.signed
            return data.field.bits if plain and data.field else 0
        if isinstance(data, RegisterCell):
            return data.register.bits if data.register.bits > 64 else 0
        return data.bits if isinstance(data, Local) and data.bits > 64 else 0

    # ---- bytes

    def leaf(self, data: FieldOf | RegisterCell | Local | Lookahead) -> tuple[str, int]:
        """Returns a pointer to a wide value's bytes, and its width."""
        if isinstance(data, FieldOf):
            assert data.field
            pointer = self.expressions.header_access.read(data.header)
            member = self.layout.field(header_type_of(data.header), data.field)
            return access(pointer, member), data.field.bits
        if isinstance(data, Local):
            return f"(args + {self.expressions.argument_offset(data.index)})", data.bits
        if isinstance(data, Lookahead):
            name = self.buffer((data.bits + 7) // 8)
            self.out.line(f"load_wide({name}, frame + at, {data.offset}, {data.bits});")
            return name, data.bits
        index, checked = self.expressions.register_index(data)
        if checked:
            return self.expressions.cell(data, index), data.register.bits
        zeros = self.out.temporary("z")
        self.out.line(f"static const uint8_t {zeros}[{data.register.bytes}];")
        cell = self.expressions.cell(data, index)
        return f"({index} < {data.register.size} ? {cell} : {zeros})", data.register.bits

    def buffer(self, size: int) -> str:
        name = self.out.temporary("b")
        self.out.array(name, size)
        return name

    def in_place(self, data: Data, bits: int) -> bool:
        """Whether the bytes of a value modulo 2^bits already exist in memory."""
        if isinstance(data, FieldOf):
            field = data.field
            if field is None or not field.wide:
                return False
            same_width = field.bits == bits
            return same_width or (
                not field.signed and field.bits < bits and field.bytes == (bits + 7) // 8
            )
        if isinstance(data, RegisterCell):
            return data.register.bits > 64 and data.register.bits == bits
        return isinstance(data, Local | Lookahead) and 64 < data.bits == bits

    def bytes(self, data: Data, bits: int) -> str:
        """Returns a pointer to the value modulo 2^bits: (bits + 7) / 8 big-endian bytes, with 0 in
        the spare bits."""
        data = strip_masks(data, bits)
        size = (bits + 7) // 8
        if isinstance(data, Const):
            name = self.out.temporary("c")
            value = (data.value % (1 << bits)).to_bytes(size, "big")
            array = ", ".join(f"{byte:#x}" for byte in value)
            self.out.line(f"static const uint8_t {name}[{size}] = {{{array}}};")
            return name
        if self.in_place(data, bits):
            return self.leaf(data)[0]  # type: ignore[arg-type]
        if isinstance(data, ChooseData):
            condition = self.expressions.boolean(data.condition)
            return f"({condition} ? {self.bytes(data.yes, bits)} : {self.bytes(data.no, bits)})"
        name = self.buffer(size)
        self.store(data, bits, name)
        return name

    def store(self, data: Data, bits: int, target: str) -> None:
        """Writes the code that stores the value modulo 2^bits at `target`, which may also be the
        place of an operand."""
        data = strip_masks(data, bits)
        size = (bits + 7) // 8
        lanes = lane_add(data, bits)
        if lanes:
            self.add_lanes(lanes, bits, target, target)
        elif isinstance(data, Const | ChooseData) or self.in_place(data, bits):
            self.out.line(f"copy_wide({target}, {self.bytes(data, bits)}, {size});")
        elif isinstance(data, Complement) or (isinstance(data, Arithmetic) and data.op in BITWISE):
            self.store_bitwise(data, bits, target)
        else:
            count = (bits + 63) // 64
            self.out.line(f"wide_store({target}, {bits}, {self.limbs(data, count)}, {count});")

    def add_lanes(self, lanes: LaneAdd, bits: int, target: str, copy: str) -> None:
        """Writes the code that stores the sum at `target` and at `copy`, which may also be the
        places of operands."""
        left, right = self.bytes(lanes.left, bits), self.bytes(lanes.right, bits)
        call = f"lanes_add_{lanes.lane_bits}"
        self.out.line(f"{call}({target}, {copy}, {left}, {right}, {(bits + 7) // 8});")

    def store_bitwise(self, data: Data, bits: int, target: str) -> None:
        value = self.bitwise(data, bits)
        size = (bits + 7) // 8
        self.out.line('_Pragma("GCC ivdep")')
        self.out.line(f"for (unsigned int i = 0; i < {size}; i++)")
        self.out.line(f"\t({target})[i] = (uint8_t)({value});")
        if bits % 8:
            self.out.line(f"({target})[0] &= {(1 << bits % 8) - 1:#x};")

    def bitwise(self, data: Data, bits: int) -> str:
        """Returns C for byte i of a tree of `& | ^ ~`, with all operands in bytes."""
        data = strip_masks(data, bits)
        if isinstance(data, Complement):
            return f"~{self.bitwise(data.value, bits)}"
        if isinstance(data, Arithmetic) and data.op in BITWISE and not lane_add(data, bits):
            return f"({self.bitwise(data.left, bits)} {data.op} {self.bitwise(data.right, bits)})"
        return f"{self.bytes(data, bits)}[i]"
