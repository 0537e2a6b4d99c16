"""Translates the parser: a label for each state. In the C code, `at` is the number of bytes parsed
so far."""

from __future__ import annotations

import dataclasses

from p4native.switch.expression import Arithmetic, Const, Data, Expression, Lookahead
from p4native.switch.model import ParserOp, State, Transition, ValueSet
from p4native.switch.program import Program
from p4native.switch.storage import Header, HeaderType, Stack, UnionStack
from p4native.switch.translate.actions import ActionWriter
from p4native.switch.translate.calculations import write_verify
from p4native.switch.translate.expressions import Expressions
from p4native.switch.translate.layout import Layout, Place
from p4native.switch.translate.opaque_string import OpaqueString
from p4native.switch.translate.packing import Piece, write_pieces
from p4native.switch.translate.steps import Steps
from p4native.switch.translate.writer import Writer, comment, quoted, u64

MAX_STEPS = 1 << 17
"""The number of states after which a parser that visits states in a circle stops with
ParserTimeout."""


class ParserWriter:
    """A writer of parse()."""

    def __init__(self, layout: Layout, out: Writer) -> None:
        self.layout = layout
        self.out = out
        self.steps = Steps(layout, out)
        self.program: Program = layout.program
        self.states = self.program.parser.states
        self.labels = {name: layout.names.make("state", name) for name in self.states}

    def error(self, name: str) -> str:
        """Returns C that stops the parser with an error of core.p4. name: the error's name."""
        return f"{{ error = {self.program.errors[name]}; goto done; }} /* {name} */"

    def goto(self, name: str | None) -> str:
        return f"goto {self.labels[name] if name is not None else 'done'};"

    def write(self) -> None:
        out = self.out
        with out.function(
            "static void parse(struct pipeline *p, struct packet *k, struct store *s, "
            "const uint8_t *frame, uint32_t len)"
        ):
            out.line("uint32_t at = 0, steps = 0;")
            out.line(f"uint64_t error = {self.program.errors['NoError']};")
            out.line()
            out.line("(void)p, (void)s, (void)steps;")
            out.line("k->flow.checksum_error = false;")
            self.steps.line("parser: %u bytes", "len")
            out.line(self.goto(self.program.parser.first))
            for name in self.reachable(self.program.parser.first):
                self.write_state(self.states[name])
            out.label("done")
            out.line("k->flow.parser_error = (uint32_t)error;")
            out.line("k->flow.payload = frame + at;")
            out.line("k->flow.payload_len = len - at;")
            if self.steps.tracing:
                errors = self.program.errors.items()
                names = "".join(f"error == {code} ? {quoted(name)} : " for name, code in errors)
                self.steps.line("  parser ends after %u bytes: %s", "at", f'{names}"?"')
            write_verify(self.layout, out)

    def reachable(self, first: str | None) -> list[str]:
        """Returns the states that can be reached, in the order in which they are found."""
        found: dict[str, None] = {}
        waiting = [first] if first is not None else []
        while waiting:
            name = waiting.pop(0)
            if name in found:
                continue
            found[name] = None
            waiting += self.following(name)
        return list(found)

    def following(self, name: str) -> list[str]:
        state = self.states[name]
        return [n for n in [*(t.next for t in state.transitions), state.default] if n is not None]

    def in_circle(self, name: str) -> bool:
        return any(name in self.reachable(other) for other in self.following(name))

    def write_state(self, state: State) -> None:
        self.out.line()
        self.out.label(self.labels[state.name])
        self.out.line(f"/* {comment(state.name)} */")
        self.out.remark(state.source)
        self.steps.place("  state ", state.name, state.source)
        self.steps.line("")
        if self.in_circle(state.name):
            self.out.line(f"if (++steps > {MAX_STEPS}u)")
            self.out.line(f"\t{self.error('ParserTimeout')}")
        for op in state.ops:
            with self.out.block(""):
                self.write_op(op)
        with self.out.block(""):
            self.write_transitions(state)
        self.out.line(self.goto(state.default))

    def write_op(self, op: ParserOp) -> None:
        expressions = Expressions(self.layout, self.out)
        for expression in (op.value, op.destination, op.length, op.condition):
            if expression is not None:
                self.check_lookahead(expression)
        if op.op == "extract":
            self.write_extract(op, expressions)
        elif op.op == "set":
            assert op.value
            assert op.destination
            ActionWriter(self.layout, self.out).assign(op.destination, op.value)
        elif op.op == "verify":
            assert op.condition
            assert op.value
            condition = expressions.boolean(op.condition)
            with self.out.block(f"if (!{condition})"):
                self.out.line(f"error = {expressions.u64(op.value)};")
                self.out.line("goto done;")
        elif op.op == "advance":
            assert op.value
            self.write_advance(op.value, expressions)
        else:
            assert op.primitive
            ActionWriter(self.layout, self.out).primitive(op.primitive)

    def check_lookahead(self, expression: Expression) -> None:
        """Writes the check of a lookahead. Reading beyond the packet's end is the error
        PacketTooShort. BMv2 reads whatever is in memory there."""
        ends = [look.offset + look.bits for look in lookaheads(expression)]
        if ends:
            self.out.line(f"if (len - at < {(max(ends) + 7) // 8})")
            self.out.line(f"\t{self.error('PacketTooShort')}")

    def write_advance(self, amount: Data, expressions: Expressions) -> None:
        self.out.line(f"uint64_t bits = {expressions.u64(amount)};")
        self.out.line()
        self.out.line("if (bits % 8)")
        self.out.line(f"\t{self.error('ParserInvalidArgument')}")
        self.out.line("if (len - at < bits / 8)")
        self.out.line(f"\t{self.error('PacketTooShort')}")
        self.out.line("at += (uint32_t)(bits / 8);")

    def write_extract(self, op: ParserOp, expressions: Expressions) -> None:
        if isinstance(op.target, Header):
            header = op.target
            self.write_fixed_or_variable(op, header.type, self.layout.place(header), expressions)
            for other in header.union.headers if header.union else ():
                if other is not header:
                    self.out.line(f"k->{self.layout.member(other)}.valid = false;")
        elif isinstance(op.target, Stack):
            array = self.layout.stacks[op.target]
            size = len(op.target.headers)
            self.write_next(op, op.target, op.target.type, size, [array], expressions)
        else:
            assert op.target
            stack, member = op.target
            headers = stack.unions[0].headers
            arrays = [self.layout.union_member(stack, i) for i in range(len(headers))]
            arrays.insert(0, arrays.pop(member))
            size = len(stack.unions)
            self.write_next(op, stack, headers[member].type, size, arrays, expressions)

    def write_next(
        self,
        op: ParserOp,
        stack: Stack | UnionStack,
        header_type: HeaderType,
        size: int,
        arrays: list[str],
        expressions: Expressions,
    ) -> None:
        """Writes an extraction into the next element of the first array. The other arrays belong to
        the other members of the same union."""
        count = self.layout.next(stack)
        self.out.line(f"if ({count} >= {size})")
        self.out.line(f"\t{self.error('StackOutOfBounds')}")
        place = self.layout.place_of(f"{arrays[0]}[{count}]", header_type)
        self.write_fixed_or_variable(op, header_type, place, expressions)
        for other in arrays[1:]:
            self.out.line(f"k->{other}[{count}].valid = false;")
        self.out.line(f"{count}++;")

    def write_fixed_or_variable(
        self, op: ParserOp, header_type: HeaderType, place: Place, expressions: Expressions
    ) -> None:
        size = header_type.fixed_bits // 8
        name = self.layout.types[header_type.name]
        if op.length is None:
            self.out.line(f"if (len - at < {size})")
            self.out.line(f"\t{self.error('PacketTooShort')}")
            self.out.line(f"extract_{name}({place.header}, {place.store}, frame + at, 0);")
            self.out.line(f"at += {size};")
            self.steps.header("    ", target_name(op), place.header, header_type)
            return
        length = op.length
        if not expressions.exact(length).signed64:
            length = Arithmetic(length.path, "sat_cast", length, Const(length.path, 64))
        self.out.line(f"int64_t bits = (int64_t){expressions.u64(length)};")
        self.out.line()
        self.out.line("if (bits % 8 || bits < 0 || bits > INT32_MAX)")
        self.out.line(f"\t{self.error('ParserInvalidArgument')}")
        self.out.line(f"if (len - at < {size} + (uint64_t)bits / 8)")
        self.out.line(f"\t{self.error('PacketTooShort')}")
        self.out.line(f"if ({header_type.max_bytes} < {size} + bits / 8)")
        self.out.line(f"\t{self.error('HeaderTooShort')}")
        variable = "(uint32_t)(bits / 8)"
        self.out.line(f"extract_{name}({place.header}, {place.store}, frame + at, {variable});")
        self.out.line(f"at += {size} + {variable};")
        self.steps.header("    ", target_name(op), place.header, header_type)

    def write_transitions(self, state: State) -> None:
        if not state.transitions:
            return
        for key in state.key:
            self.check_lookahead(key)
        expressions = Expressions(self.layout, self.out)
        keys = [
            self.write_key(key, bits, expressions)
            for key, bits in zip(state.key, state.key_bits, strict=True)
        ]
        for name, bits in zip(keys, state.key_bits, strict=True):
            self.show_key(name, bits)
        self.steps.line("")
        if any(t.value_set for t in state.transitions):
            self.write_whole_key(keys, state.key_bits)
        for transition in state.transitions:
            if transition.value_set:
                condition = self.membership(transition, transition.value_set)
            else:
                condition = self.condition(transition, keys, state.key_bits)
            self.out.line(f"if ({condition})")
            self.out.line(f"\t{self.goto(transition.next)}")

    def write_whole_key(self, keys: list[str], bits: tuple[int, ...]) -> None:
        """Writes the C array `key`, which holds all fields of the key, each padded to whole
        bytes."""
        sizes = [(b + 7) // 8 for b in bits]
        self.out.array("key", sum(sizes))
        self.out.line()
        pieces = [
            Piece(key, 8 * size, wide=width > 64)
            for key, width, size in zip(keys, bits, sizes, strict=True)
        ]
        write_pieces(self.out, "key", pieces)

    def membership(self, transition: Transition, value_set: ValueSet) -> str:
        name = "key"
        size = value_set.bytes
        if transition.mask is not None:
            mask, name = self.out.temporary("c"), self.out.temporary("b")
            array = ", ".join(f"{byte:#x}" for byte in transition.mask)
            self.out.line(f"static const uint8_t {mask}[{size}] = {{{array}}};")
            self.out.array(name, size)
            self.out.line(f"for (unsigned int i = 0; i < {size}; i++)")
            self.out.line(f"\t{name}[i] = key[i] & {mask}[i];")
        return f"value_set_has(&p->value_set[{value_set.index}], {name}, {size})"

    def show_key(self, name: str, bits: int) -> None:
        if not self.steps.tracing:
            return
        if bits <= 64:
            self.steps.say("    select 0x%llx", f"(unsigned long long){name}")
        else:
            self.steps.say("    select ")
            self.out.line(f"say_bytes(p, {name}, {(bits + 7) // 8});")

    def write_key(self, key: Data, bits: int, expressions: Expressions) -> str:
        name = self.out.temporary("key")
        if bits <= 64:
            value = expressions.u64(key)
            self.out.line(f"uint64_t {name} = low_bits({value}, {bits});")
        else:
            self.out.line(f"const uint8_t *{name} = {expressions.wide.bytes(key, bits)};")
        return name

    def condition(self, transition: Transition, keys: list[str], key_bits: tuple[int, ...]) -> str:
        assert transition.value is not None
        parts = []
        offset = 0
        for key, bits in zip(keys, key_bits, strict=True):
            size = (bits + 7) // 8
            value = transition.value[offset : offset + size]
            mask = transition.mask[offset : offset + size] if transition.mask else b"\xff" * size
            offset += size
            parts.append(self.key_condition(key, bits, value, mask))
        wanted = [p for p in parts if p]
        return " && ".join(wanted) if wanted else "true"

    def key_condition(self, key: str, bits: int, value: bytes, mask: bytes) -> str:
        number, mask_number = int.from_bytes(value, "big"), int.from_bytes(mask, "big")
        number &= mask_number
        if not mask_number:
            return ""
        if bits <= 64:
            full = mask_number & (1 << bits) - 1 == (1 << bits) - 1
            left = key if full else f"({key} & {u64(mask_number)})"
            return f"{left} == {u64(number)}"
        names = []
        for data in (number.to_bytes(len(value), "big"), mask):
            name = self.out.temporary("c")
            array = ", ".join(f"{byte:#x}" for byte in data)
            self.out.line(f"static const uint8_t {name}[{len(data)}] = {{{array}}};")
            names.append(name)
        return f"matches_ternary({key}, {names[0]}, {names[1]}, {len(value)})"


def target_name(op: ParserOp) -> tuple[str | OpaqueString, ...]:
    """Returns the name of the header that an extraction fills, for messages."""
    if isinstance(op.target, Header):
        return (op.target.name,)
    if isinstance(op.target, Stack):
        return op.target.name, ".next"
    assert op.target
    stack, member = op.target
    return stack.name, ".next.", stack.unions[0].member_names[member]


def lookaheads(expression: Expression) -> list[Lookahead]:
    """Returns all lookaheads in an expression."""
    if isinstance(expression, Lookahead):
        return [expression]
    found = []
    for field in dataclasses.fields(expression):
        value = getattr(expression, field.name)
        if isinstance(value, Expression):
            found += lookaheads(value)
    return found
