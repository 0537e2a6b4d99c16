"""Writes the C that reports messages of a program: log_msg, asserts and, with Detail.TRACE, each
step of a packet."""

from __future__ import annotations

from p4native.switch.bmv2_json.expressions import header_type_of
from p4native.switch.detail import Detail
from p4native.switch.expression import Data, FieldOf, HeaderRef
from p4native.switch.model import Action, Primitive, Table
from p4native.switch.storage import Field, Header, HeaderType
from p4native.switch.translate.expressions import Expressions
from p4native.switch.translate.layout import Layout
from p4native.switch.translate.opaque_string import OpaqueString
from p4native.switch.translate.writer import Writer, access, quoted


class Steps:
    """A writer of C that reports messages. It writes nothing if the level of detail is too low for
    them."""

    def __init__(self, layout: Layout, out: Writer) -> None:
        self.layout = layout
        self.out = out
        self.tracing = out.detail is Detail.TRACE

    def say(self, text: str, *values: str) -> None:
        """Writes a message of the trace. text: a printf format without the newline. values: C
        expressions."""
        if self.tracing:
            self.out.line(f"say({', '.join(['p', quoted(text), *values])});")

    def line(self, text: str, *values: str) -> None:
        self.say(text + "\n", *values)

    def place(self, what: str, name: str, source: str) -> None:
        """Reports the name of something and, if the JSON has it, the P4 line where it stands."""
        if source:
            self.say(what + "%s (%s)", quoted(name), quoted(source))
        else:
            self.say(what + "%s", quoted(name))

    def source(self, indent: str, source: str) -> None:
        """Reports the P4 line that is executed next, if the JSON has it."""
        if source:
            self.line(indent + "%s", quoted(source))

    def header(
        self,
        indent: str,
        name: tuple[str | OpaqueString, ...],
        pointer: str,
        header_type: HeaderType,
    ) -> None:
        """Reports all fields of a header."""
        if self.tracing:
            type_name = self.layout.types[header_type.name]
            self.out.line(f"show_{type_name}(p, {quoted(indent, *name)}, {pointer});")

    def write_show(self, header_type: HeaderType) -> None:
        """Writes show_<type>()."""
        if not self.tracing:
            return
        name = self.layout.types[header_type.name]
        with self.out.function(
            f"__attribute__((unused)) static void show_{name}"
            f"(struct pipeline *p, const char *name, const struct t_{name} *h)"
        ):
            self.out.line("(void)h;")
            self.out.line('say(p, "%s:", name);')
            for field in header_type.fields:
                self.say(" %s=", quoted(field.name))
                self.value(header_type, field, "h")
            self.line("")

    def value(self, header_type: HeaderType, field: Field, pointer: str) -> None:
        member = access(pointer, self.layout.field(header_type, field))
        if field.variable:
            length = access(pointer, self.layout.length(header_type, field))
            self.out.line(f"say_bytes(p, {member}, {length});")
        elif field.wide:
            self.out.line(f"say_bytes(p, {member}, {field.bytes});")
        else:
            digits = (field.bits + 3) // 4
            cast = f"(unsigned long long){member}"
            self.out.line(f'say(p, "0x%0{digits}llx", {cast});')

    def assigned(self, primitive: Primitive) -> None:
        """Reports the new value that a primitive gives to a field, if the field belongs to a known
        header."""
        if not self.tracing:
            return
        for target in primitive.args:
            if primitive.op in CHANGES and isinstance(target, FieldOf) and target.field:
                if isinstance(target.header, HeaderRef):
                    header = target.header.header
                    self.say("      %s = ", quoted(header.name, ".", target.field.name))
                    place = self.layout.place(header).header
                    self.value(header_type_of(target.header), target.field, place)
                    self.line("")
                return

    def key(self, table: Table) -> None:
        """Reports the key that was looked up, from the array `key`."""
        if not self.tracing:
            return
        offset = 0
        for key in table.keys:
            self.say(" %s=", quoted(key.name))
            self.out.line(f"say_bytes(p, key + {offset}, {key.bytes});")
            offset += key.bytes

    def found(self, table: Table) -> None:
        """Reports a table's hit or miss."""
        if not self.tracing:
            return
        slot = "(unsigned int)(((uint8_t *)e - t->slots) / t->stride)"
        if table.keys:
            self.out.line(f'say(p, e ? ": hit, entry %u" : ": miss", e ? {slot} : 0u);')

    def action(self, action: Action) -> None:
        """Reports the action that is executed, with its arguments, and ends the table's line."""
        if not self.tracing:
            return
        self.say(", %s(", quoted(action.name))
        offset = 0
        for i, param in enumerate(action.params):
            self.say(f"{', ' if i else ''}%s=", quoted(param.name))
            self.out.line(f"say_bytes(p, args + {offset}, {param.bytes});")
            offset += param.bytes
        self.line(")")

    def log(
        self, text: OpaqueString, values: tuple[Data | None, ...], expressions: Expressions
    ) -> None:
        """Translates log_msg. Each {} in its text stands for the next value."""
        if self.out.detail is Detail.NOTHING:
            self.out.line(";")
            return
        self.out.line('say(p, "log: ");')
        for i, part in enumerate(text.split("{}")):
            if i:
                self.logged(values[i - 1] if i <= len(values) else None, expressions)
            if part:
                self.out.line(f'say(p, "%s", {quoted(part)});')
        self.out.line('say(p, "\\n");')

    def logged(self, value: Data | None, expressions: Expressions) -> None:
        if value is None:
            self.out.line('say(p, "{}");')
        elif isinstance(value, FieldOf) and value.field and value.field.wide:
            pointer = expressions.header_access.read(value.header)
            self.value(header_type_of(value.header), value.field, pointer)
        else:
            signed = expressions.ranges.of(value).low < 0
            kind, cast = ("lld", "long long") if signed else ("llu", "unsigned long long")
            self.out.line(f'say(p, "%{kind}", ({cast}){expressions.u64(value)});')

    def failed(self, source: str, what: str) -> str:
        """Returns the statement that reports a failed assert or assume."""
        place = quoted(source) if source else '"source unknown"'
        return f'say(p, "{what} failed: %s\\n", {place});'

    def emitted(self, headers: tuple[Header, ...]) -> None:
        """Writes the message about the headers that the deparser emits."""
        if not self.tracing:
            return
        self.line("deparser")
        for header in headers:
            member = f"k->{self.layout.member(header)}"
            self.out.line(f"if ({member}.valid)")
            self.out.depth += 1
            self.header("  ", (header.name,), f"&{member}", header.type)
            self.out.depth -= 1


CHANGES = frozenset(
    (
        *("assign", "register_read", "modify_field_rng_uniform", "execute_meter"),
        "modify_field_with_hash_based_offset",
    )
)
