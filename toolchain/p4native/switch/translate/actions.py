"""Translates actions to C. An action becomes a function, and a primitive becomes a block in it."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from p4native.switch.bmv2_json.expressions import header_type_of
from p4native.switch.detail import Detail
from p4native.switch.expression import (
    Arithmetic,
    Const,
    Data,
    DataToBool,
    Expression,
    FieldOf,
    HeaderExpression,
    HeaderRef,
    RegisterCell,
    StackRef,
    UnionExpression,
)
from p4native.switch.model import Action, Calculation, Counter, LearnList, Meter, Param, Primitive
from p4native.switch.storage import Field, Register
from p4native.switch.translate.calculations import call
from p4native.switch.translate.expressions import Expressions
from p4native.switch.translate.fusion import SumAndWrite, sum_and_write
from p4native.switch.translate.layout import Layout, Place, integer_type, type_bits
from p4native.switch.translate.opaque_string import OpaqueString
from p4native.switch.translate.ranges import Range, Text, of_bits
from p4native.switch.translate.steps import Steps
from p4native.switch.translate.terms import write_terms
from p4native.switch.translate.writer import Writer, access, comment, quoted

JUMPS = ("_jump", "_jump_if_zero")
MAX_ROUNDS = 1 << 16
"""The largest number of backward jumps in one execution of an action."""


class ActionWriter:
    """A writer of the C of primitives. params: the parameters of the action to which the primitives
    belong."""

    def __init__(self, layout: Layout, out: Writer, params: tuple[Param, ...] = ()) -> None:
        self.layout = layout
        self.out = out
        self.expressions = Expressions(layout, out, params)
        self.header_access = self.expressions.header_access
        self.wide = self.expressions.wide
        self.steps = Steps(layout, out)

    def write(self, action: Action) -> None:
        out = self.out
        jumps = [p for p in action.primitives if p.op in JUMPS]
        targets = {p.args[-1].value for p in jumps}  # type: ignore[union-attr]
        out.line(f"/* {comment(action.name)} */")
        with out.function(
            f"static inline void {self.layout.function(action)}"
            "(struct pipeline *p, struct packet *k, struct store *s, const uint8_t *args)"
        ):
            out.line("(void)p, (void)k, (void)s, (void)args;")
            self.declare_rounds(action)
            at = 0
            while at < len(action.primitives):
                if at in targets:
                    out.label(f"step_{at}")
                with out.block(""):
                    at += self.step(action.primitives, at, targets)
            if len(action.primitives) in targets:
                out.label(f"step_{len(action.primitives)}")

    def step(self, primitives: tuple[Primitive, ...], at: int, targets: Set[int]) -> int:
        """Writes the C of the primitive at a place, and that of the next one too if they are
        translated together. Returns how many there were. targets: the places to which primitives
        jump."""
        first = primitives[at]
        if first.op in JUMPS and first.args[-1].value <= at:  # type: ignore[union-attr]
            self.count_round()
        pair = None if self.steps.tracing else sum_and_write(primitives, at, targets)
        if pair is None:
            self.primitive(first)
            return 1
        self.out.remark(first.source)
        self.out.remark(primitives[at + 1].source)
        self.sum_and_write(pair)
        return 2

    def declare_rounds(self, action: Action) -> None:
        backward = [
            i
            for i, p in enumerate(action.primitives)
            if p.op in JUMPS and p.args[-1].value <= i  # type: ignore[union-attr]
        ]
        if backward:
            self.out.line("uint32_t rounds = 0;")

    def count_round(self) -> None:
        """Writes the check that ends an action after too many backward jumps. BMv2 itself would
        never end an endless loop."""
        self.out.line(f"if (++rounds > {MAX_ROUNDS})")
        self.out.line("\treturn;")

    def primitive(self, primitive: Primitive) -> None:
        self.out.remark(primitive.source)
        if primitive.op != "_jump":  # whose source is the `if` that began
            self.steps.source("    ", primitive.source)
        if primitive.op in ("assert", "assume"):
            self.check(primitive)
            return
        WRITERS[primitive.op](self, *primitive.args)
        self.steps.assigned(primitive)

    def check(self, primitive: Primitive) -> None:
        """Translates an assertion. BMv2 aborts if it fails; here the failure is only reported."""
        if self.out.detail is Detail.NOTHING:
            self.out.line(";")
            return
        condition = primitive.args[0]
        assert isinstance(condition, Data)
        self.out.line(f"if ({self.expressions.compare('==', condition, Const('', 0))})")
        self.out.line("\t" + self.steps.failed(primitive.source, primitive.op))

    def log(self, text: OpaqueString, values: tuple[Data | None, ...]) -> None:
        self.steps.log(text, values, self.expressions)

    # ---- assignments

    def assign(self, target: Expression, value: Data) -> None:
        if isinstance(target, RegisterCell):
            self.assign_register(target, value)
            return
        assert isinstance(target, FieldOf)
        assert target.field
        field = target.field
        if field.saturating:
            cast = "sat_cast" if field.signed else "usat_cast"
            value = Arithmetic(value.path, cast, value, Const(value.path, field.bits))
        member = self.layout.field(header_type_of(target.header), field)
        if field.wide:
            with self.header_access.change(target.header) as place:
                self.assign_wide(place, member, field.bits, value)
            return
        text = self.cut(value, field.bits)
        with self.header_access.change(target.header) as place:
            self.out.line(f"{access(place.header, member)} = ({integer_type(field.bits)}){text};")

    def assign_wide(self, place: Place, member: str, bits: int, value: Data) -> None:
        store = access(place.store, member)
        self.wide.store(value, bits, store)
        self.out.line(f"{access(place.header, member)} = {store};")

    def cut(self, value: Data, bits: int) -> str:
        """Returns C for the value modulo 2^bits. The plain value is returned if the C type of a
        field that is so wide cuts the value in any case."""
        text = self.expressions.u64(value)
        found = self.expressions.ranges.of(value)
        small = found.low >= 0 and found.high < 1 << bits
        return text if small or type_bits(bits) == bits else f"low_bits({text}, {bits})"

    def assign_register(self, target: RegisterCell, value: Data) -> None:
        self.write_register(target.register, target.index, value, wide_index=True)

    def assign_variable(self, target: FieldOf, source: FieldOf) -> None:
        assert target.field
        assert source.field
        from_type, to_type = header_type_of(source.header), header_type_of(target.header)
        pointer = self.header_access.read(source.header)
        member = self.layout.field(to_type, target.field)
        length = self.layout.length(to_type, target.field)
        self.out.line(
            f"uint32_t n = {access(pointer, self.layout.length(from_type, source.field))};"
        )
        self.out.line()
        self.out.line(f"if (n > {target.field.bytes})")
        self.out.line(f"\tn = {target.field.bytes};")
        from_member = self.layout.field(from_type, source.field)
        with self.header_access.change(target.header) as place:
            store = access(place.store, member)
            self.out.line(f"memmove({store}, {access(pointer, from_member)}, n);")
            self.out.line(f"{access(place.header, member)} = {store};")
            self.out.line(f"{access(place.header, length)} = n;")

    # ---- headers

    def assign_header(self, target: HeaderExpression, source: HeaderExpression) -> None:
        name = self.layout.types[header_type_of(target).name]
        pointer = self.header_access.read(source)
        with self.header_access.change(target) as place:
            self.out.line(f"copy_{name}({place.header}, {place.store}, {pointer});")
            siblings = self.header_access.siblings(target, place)
            if siblings:
                with self.out.block(f"if ({access(place.header, 'valid')})"):
                    for other in siblings:
                        self.out.line(f"{other}.valid = false;")

    def assign_union(self, target: UnionExpression, source: UnionExpression) -> None:
        pairs = (self.header_access.union_members(u) for u in (target, source))
        for to, origin in zip(*pairs, strict=True):
            self.assign_header(to, origin)

    def assign_stack(self, target: Any, source: Any) -> None:
        to, origin = target.stack, source.stack
        self.out.line(f"{self.layout.next(to)} = {self.layout.next(origin)};")
        for left, right in zip(to.headers, origin.headers, strict=True):
            self.assign_header(HeaderRef("", left), HeaderRef("", right))

    def assign_union_stack(self, target: Any, source: Any) -> None:
        to, origin = target.stack, source.stack
        self.out.line(f"{self.layout.next(to)} = {self.layout.next(origin)};")
        for left, right in zip(to.unions, origin.unions, strict=True):
            for one, other in zip(left.headers, right.headers, strict=True):
                self.assign_header(HeaderRef("", one), HeaderRef("", other))

    def stack_arrays(self, stack: Expression) -> tuple[list[tuple[str, str, str]], int]:
        """Returns the arrays that make a stack, and the stack's size. Each array is given as
        (member of k, its place in the store, type name)."""
        if isinstance(stack, StackRef):
            types = [(self.layout.stacks[stack.stack], stack.stack.type)]
            size = len(stack.stack.headers)
        else:
            unions = stack.stack.unions  # type: ignore[attr-defined]
            size = len(unions)
            types = [
                (self.layout.union_member(stack.stack, i), h.type)  # type: ignore[attr-defined]
                for i, h in enumerate(unions[0].headers)
            ]
        found = []
        for member, header_type in types:
            store = f"&s->{member}" if self.layout.has_store(header_type) else ""
            found.append((member, store, self.layout.types[header_type.name]))
        return found, size

    def swap(self, arrays: list[tuple[str, str, str]], other: str) -> None:
        for member, store, name in arrays:
            stores = [f"{store}[{i}]" if store else "NULL" for i in ("i", other)]
            self.out.line(
                f"swap_{name}(&k->{member}[i], {stores[0]}, &k->{member}[{other}], {stores[1]});"
            )

    def shift_amount(self, amount: Data, size: int) -> None:
        value = self.expressions.u64(amount)
        self.out.line(f"uint64_t asked = {value};")
        self.out.line(f"uint32_t n = asked < {size} ? (uint32_t)asked : {size};")
        self.out.line()

    def push(self, stack: Any, amount: Data) -> None:
        """Translates a push. The new elements at the front of a union stack keep the state of the
        elements that the push removes, as in BMv2."""
        arrays, size = self.stack_arrays(stack)
        self.shift_amount(amount, size)
        count = self.layout.next(stack.stack)
        self.out.line(f"{count} = {count} + n < {size} ? {count} + n : {size};")
        with self.out.block(f"for (uint32_t i = {size}; n && i-- > n;)"):
            self.swap(arrays, "i - n")
        if isinstance(stack, StackRef):
            self.out.line("for (uint32_t i = 0; i < n; i++)")
            self.out.line(f"\tk->{arrays[0][0]}[i].valid = false;")

    def pop(self, stack: Any, amount: Data) -> None:
        arrays, size = self.stack_arrays(stack)
        self.shift_amount(amount, size)
        count = self.layout.next(stack.stack)
        self.out.line(f"{count} -= {count} < n ? {count} : n;")
        with self.out.block(f"for (uint32_t i = 0; n && i < {size} - n; i++)"):
            self.swap(arrays, "i + n")
        if isinstance(stack, StackRef):
            self.out.line(f"for (uint32_t i = {size} - n; i < {size}; i++)")
            self.out.line(f"\tk->{arrays[0][0]}[i].valid = false;")

    def add_header(self, header: HeaderExpression) -> None:
        name = self.layout.types[header_type_of(header).name]
        with (
            self.header_access.change(header) as place,
            self.out.block(f"if (!{access(place.header, 'valid')})"),
        ):
            self.out.line(f"*({place.header}) = zero_{name};")
            self.header_access.mark_valid(header, place)
            self.out.line(f"k->flow.length += size_{name}({place.header});")

    def add_header_fast(self, header: HeaderExpression) -> None:
        with self.header_access.change(header) as place:
            self.header_access.mark_valid(header, place)

    def remove_header(self, header: HeaderExpression) -> None:
        name = self.layout.types[header_type_of(header).name]
        with (
            self.header_access.change(header) as place,
            self.out.block(f"if ({access(place.header, 'valid')})"),
        ):
            self.out.line(f"k->flow.length -= size_{name}({place.header});")
            self.out.line(f"{access(place.header, 'valid')} = false;")

    # ---- state

    def register_index(self, register: Register, index: Data, wide: bool) -> str:
        """Returns a C variable with the index. BMv2 uses the lowest 32 bits of an index in
        primitives, and 64 in expressions."""
        name = self.out.temporary("i")
        cast = "" if wide else "(uint32_t)"
        self.out.line(f"uint64_t {name} = {cast}{self.expressions.u64(index)};")
        return name

    def read_register(self, target: FieldOf, register: Register, index: Data) -> None:
        name = self.register_index(register, index, wide=False)
        self.show_index(register, name)
        with self.out.block(f"if ({name} < {register.size})"):
            cell = RegisterCell("", register, Text("", name, Range(0, max(register.size - 1, 0))))
            self.assign(target, cell)

    def write_register(
        self, register: Register, index: Data, value: Data, wide_index: bool = False
    ) -> None:
        name = self.register_index(register, index, wide_index)
        self.show_index(register, name)
        with self.out.block(f"if ({name} < {register.size})"):
            cell = self.expressions.cell(RegisterCell("", register, index), name)
            if register.bits > 64:
                self.wide.store(value, register.bits, cell)
                if self.steps.tracing:
                    self.steps.say("      written: ")
                    self.out.line(f"say_bytes(p, {cell}, {register.bytes});")
                    self.steps.line("")
            else:
                text = self.cut(value, register.bits)
                kind = integer_type(register.bits)
                self.out.line(f"*({kind} *){cell} = ({kind}){text};")
                written = f"(unsigned long long)*({kind} *){cell}"
                self.steps.line("      written: 0x%llx", written)

    def sum_and_write(self, pair: SumAndWrite) -> None:
        """Translates a sum of lanes that goes to a field and to a register."""
        place = self.layout.place(pair.header.header)
        store = access(place.store, self.layout.field(pair.header.header.type, pair.target))
        name = self.register_index(pair.register, pair.index, wide=False)
        cell = self.expressions.cell(RegisterCell("", pair.register, pair.index), name)
        copy = f"({name} < {pair.register.size} ? {cell} : {store})"
        self.wide.add_lanes(pair.lanes, pair.target.bits, store, copy)
        member = self.layout.field(pair.header.header.type, pair.target)
        self.out.line(f"{access(place.header, member)} = {store};")

    def show_index(self, register: Register, index: str) -> None:
        name = quoted(register.name)
        self.steps.line("      register %s[%llu]", name, f"(unsigned long long){index}")

    def count(self, counter: Counter, index: Data) -> None:
        self.out.line(f"uint32_t i = (uint32_t){self.expressions.u64(index)};")
        self.out.line()
        with self.out.block(f"if (i < {counter.size})"):
            self.out.line(f"p->counter[{counter.index}][i].packets++;")
            self.out.line(f"p->counter[{counter.index}][i].bytes += k->flow.ingress_length;")

    def execute_meter(self, meter: Meter, index: Data, target: FieldOf) -> None:
        self.out.line(f"uint32_t i = (uint32_t){self.expressions.u64(index)};")
        self.out.line()
        with self.out.block(f"if (i < {meter.size})"):
            units = "k->flow.ingress_length" if meter.bytes else "1"
            element = f"&p->meter[{meter.index}][i]"
            self.out.line(f"uint32_t colour = meter_execute({element}, {units}, p->now_us);")
            self.out.line()
            self.assign(target, Text("", "colour", Range(0, 2)))

    def digest(self, _receiver: str, learned: LearnList) -> None:
        """Translates a digest. BMv2 samples once, after ingress, and only the last digest that was
        requested counts."""
        self.out.line(f"k->flow.digest = {learned.index + 1};")

    # ---- the rest

    def random(self, target: Expression, low: Data, high: Data) -> None:
        self.out.line(f"uint64_t low = {self.expressions.u64(low)};")
        self.out.line(f"uint64_t high = {self.expressions.u64(high)};")
        self.out.line()
        with self.out.block("if (low <= high)"):
            self.out.line("uint64_t v = random_between(&p->random, low, high);")
            self.assign(target, Text("", "v", of_bits(64)))

    def hash(self, target: Expression, base: Data, calculation: Calculation, size: Data) -> None:
        self.out.line(f"uint64_t base = {self.expressions.u64(base)};")
        self.out.line(f"uint64_t size = {self.expressions.u64(size)};")
        self.out.line(f"uint64_t v = {call(calculation)} % (size ? size : 1) + base;")
        self.out.line()
        self.assign(target, Text("", "v", of_bits(64)))

    def drop(self) -> None:
        self.out.line("set_egress_spec(k, p->drop_port);")
        self.out.line("set_mcast_grp(k, 0);")

    def mark_to_drop(self, header: HeaderRef) -> None:
        for name, value in (("egress_spec", "p->drop_port"), ("mcast_grp", "0")):
            field: Field | None = header.header.type.field(name)
            if field and not field.wide:
                target = FieldOf("", header, field)
                self.assign(target, Text("", value, of_bits(16)))

    def set_flag(self, name: str, value: Data, extra: str = "") -> None:
        text = self.expressions.u64(value)
        self.out.line(f"k->flow.{name} = (uint16_t){text}{extra};")

    def clone(self, session: Data, fields: Data) -> None:
        self.set_flag("clone_session", session, " | CLONE_REQUESTED")
        self.set_flag("clone_fields", fields)

    def truncate(self, length: Data) -> None:
        self.out.line(f"uint64_t length = {self.expressions.u64(length)};")
        self.out.line()
        self.out.line("if (length < k->flow.truncate)")
        self.out.line("\tk->flow.truncate = (uint32_t)length;")

    def jump(self, target: Const) -> None:
        self.out.line(f"goto step_{target.value};")

    def jump_if_zero(self, condition: Data, target: Const) -> None:
        test = self.expressions.compare("==", condition, Const("", 0))
        if self.steps.tracing:
            is_true = DataToBool(condition.path, condition)
            if write_terms(is_true, self.expressions, "      ") != 1:
                self.steps.line("      the condition is %s", f'{test} ? "false" : "true"')
        self.out.line(f"if ({test})")
        self.out.line(f"\tgoto step_{target.value};")

    def nothing(self, *_args: object) -> None:
        self.out.line(";")


WRITERS: dict[str, Callable[..., None]] = {
    "assign": ActionWriter.assign,
    "assign_VL": ActionWriter.assign_variable,
    "assign_header": ActionWriter.assign_header,
    "assign_union": ActionWriter.assign_union,
    "assign_header_stack": ActionWriter.assign_stack,
    "assign_union_stack": ActionWriter.assign_union_stack,
    "push": ActionWriter.push,
    "pop": ActionWriter.pop,
    "_jump": ActionWriter.jump,
    "_jump_if_zero": ActionWriter.jump_if_zero,
    "exit": lambda w: w.out.line("k->flow.exit = true;"),
    "log_msg": ActionWriter.log,
    "no_op": ActionWriter.nothing,
    "modify_field_rng_uniform": ActionWriter.random,
    "drop": ActionWriter.drop,
    "mark_to_drop": ActionWriter.mark_to_drop,
    "add_header": ActionWriter.add_header,
    "add_header_fast": ActionWriter.add_header_fast,
    "remove_header": ActionWriter.remove_header,
    "clone_ingress_pkt_to_egress": ActionWriter.clone,
    "clone_egress_pkt_to_egress": ActionWriter.clone,
    "resubmit": lambda w, fields: w.set_flag("resubmit_fields", fields),
    "recirculate": lambda w, fields: w.set_flag("recirculate_fields", fields),
    "modify_field_with_hash_based_offset": ActionWriter.hash,
    "count": ActionWriter.count,
    "register_read": ActionWriter.read_register,
    "register_write": ActionWriter.write_register,
    "truncate": ActionWriter.truncate,
    "execute_meter": ActionWriter.execute_meter,
    "generate_digest": ActionWriter.digest,
}
