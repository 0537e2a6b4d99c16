"""Chooses the layout of a program's state in C: header structs, the packet, the store of wide
fields, and registers.

A field of at most 64 bits is an unsigned integer member `f_p4_<name>` (two's complement if signed).
A wider field is a pointer `w_p4_<name>` to big-endian bytes. These are in the frame, in the
packet's `store`, or in the store of the packet from which the field was copied. A write goes to the
packet's own store and makes the pointer point there. A field of variable width also has its length
in bytes, `n_p4_<name>`.
"""

from __future__ import annotations

from dataclasses import dataclass

from p4native.switch.bmv2_json.calculations import input_bits
from p4native.switch.model import Action
from p4native.switch.program import Program
from p4native.switch.storage import Field, Header, HeaderType, Register, Stack, Union, UnionStack
from p4native.switch.translate.writer import Names, Writer, comment

STANDARD_FIELDS = {
    "ingress_port": "standard_metadata.ingress_port",
    "packet_length": "standard_metadata.packet_length",
    "instance_type": "standard_metadata.instance_type",
    "egress_spec": "standard_metadata.egress_spec",
    "egress_port": "standard_metadata.egress_port",
    "parser_error": "standard_metadata.parser_error",
    "checksum_error": "standard_metadata.checksum_error",
    "ingress_global_timestamp": "intrinsic_metadata.ingress_global_timestamp",
    "egress_global_timestamp": "intrinsic_metadata.egress_global_timestamp",
    "mcast_grp": "intrinsic_metadata.mcast_grp",
    "egress_rid": "intrinsic_metadata.egress_rid",
    "priority": "intrinsic_metadata.priority",
    "enq_timestamp": "queueing_metadata.enq_timestamp",
    "enq_qdepth": "queueing_metadata.enq_qdepth",
    "deq_timedelta": "queueing_metadata.deq_timedelta",
    "deq_qdepth": "queueing_metadata.deq_qdepth",
    "qid": "queueing_metadata.qid",
}
QUEUEING = ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth")


def integer_type(bits: int) -> str:
    """Returns the smallest unsigned C type with at least `bits` bits."""
    return next(f"uint{size}_t" for size in (8, 16, 32, 64) if bits <= size)


def type_bits(bits: int) -> int:
    return next(size for size in (8, 16, 32, 64) if bits <= size)


@dataclass(frozen=True)
class Place:
    """A header in C: a pointer to its struct, and a pointer to its part of the store if the type
    has wide fields."""

    header: str
    store: str


@dataclass(frozen=True)
class RegisterPlace:
    """The place of a register: the number of a group of registers, and the register's offset in an
    element of that group."""

    group: int
    offset: int
    native: bool


class Layout:
    """The C names and positions of a program's state."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = names = Names()
        self.types = {t.name: names.make("", t.name) for t in program.header_types.values()}
        self.members: dict[str, dict[int, str]] = {}
        for header_type in program.header_types.values():
            self.members[header_type.name] = {
                f.index: names.make("w" if f.wide else "f", f.name) for f in header_type.fields
            }
        self.headers = {
            h: names.make("h", h.name)
            for h in program.headers.values()
            if not h.stack and not (h.union and h.union.stack)
        }
        self.stacks: dict[Stack | UnionStack, str] = {}
        for stack in program.stacks.values():
            self.stacks[stack] = names.make("s", stack.name)
        for union_stack in program.union_stacks.values():
            self.stacks[union_stack] = names.make("u", union_stack.name)
        self.register_places, self.group_strides, self.group_sizes = place_registers(program)

    def has_store(self, header_type: HeaderType) -> bool:
        return any(f.wide for f in header_type.fields)

    def field(self, header_type: HeaderType, field: Field) -> str:
        """Returns the member of the header's struct that holds a field."""
        return self.members[header_type.name][field.index]

    def length(self, header_type: HeaderType, field: Field) -> str:
        return "n" + self.field(header_type, field)[1:]

    def function(self, action: Action) -> str:
        """Returns the C function of an action. Its name contains the action's index, because names
        of actions may repeat."""
        return self.names.make(f"action_{action.index}", action.name)

    def member(self, header: Header) -> str:
        """Returns the member of struct packet (and struct store) that holds a header."""
        if header.stack:
            return f"{self.stacks[header.stack]}[{header.stack_index}]"
        if header.union and header.union.stack:
            name = self.union_member(header.union.stack, header.member)
            return f"{name}[{header.union.stack_index}]"
        return self.headers[header]

    def union_member(self, stack: UnionStack, member: int) -> str:
        """Returns the array that holds one member of all unions of a stack."""
        return f"m{member}_{self.stacks[stack]}"

    def next(self, stack: Stack | UnionStack) -> str:
        """Returns the C lvalue that counts the elements parsed into a stack."""
        return f"k->next_{self.stacks[stack]}"

    def place(self, header: Header) -> Place:
        return self.place_of(self.member(header), header.type)

    def place_of(self, member: str, header_type: HeaderType) -> Place:
        store = f"&s->{member}" if self.has_store(header_type) else "NULL"
        return Place(f"&k->{member}", store)

    def union_headers(self, union: Union) -> list[Place]:
        return [self.place(h) for h in union.headers]

    def standard(self, name: str) -> tuple[Header, Field] | None:
        """Returns a field that the target itself reads or writes, or None if the program does not
        have it."""
        found = self.program.standard_field(STANDARD_FIELDS[name])
        if found is None and name in ("mcast_grp", "egress_rid"):
            return None
        return None if found and found[1].wide else found

    def write(self, out: Writer) -> None:
        """Writes the struct definitions and the accessors of standard fields."""
        self.write_numbers(out)
        for header_type in self.program.header_types.values():
            self.write_type(out, header_type)
        self.write_packet(out)
        self.write_store(out)
        self.write_initial(out)

    def write_numbers(self, out: Writer) -> None:
        program = self.program
        ops = {p.op for a in program.actions for p in a.primitives}
        clones = ops & {"clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"}
        headers = sum((h.type.max_bits + 7) // 8 for h in program.deparser.headers)
        out.line(f"#define TABLES {len(program.tables)}")
        out.line(f"#define PROFILES {len(program.profiles)}")
        out.line(f"#define COUNTERS {len(program.counters)}")
        out.line(f"#define METERS {len(program.meters)}")
        out.line(f"#define LEARN_LISTS {len(program.learn_lists)}")
        out.line(f"#define VALUE_SETS {len(program.value_sets)}")
        out.line(f"#define REGISTERS {len(program.registers)}")
        out.line(f"#define REGISTER_GROUPS {len(self.group_strides)}")
        out.line(f"#define LEVELS {8 if clones else 3}")
        out.line(f"#define PENDING {32 if 'recirculate' in ops else 1}")
        out.line(f"#define MAX_RECIRCULATED {65536 + headers if 'recirculate' in ops else 1}")
        recirculated = headers + self.calculation_bytes() + 65536 + headers
        out.line(f"#define SCRATCH_BYTES {recirculated}")
        out.line()

    def calculation_bytes(self) -> int:
        """Returns the number of bytes that the largest input of a calculation needs, without the
        payload. Rounding adds at most one byte for each item."""
        sizes = [
            sum(map(input_bits, c.inputs)) // 8 + len(c.inputs)
            for c in self.program.calculations.values()
        ]
        return max(sizes, default=0) + 8

    def write_type(self, out: Writer, header_type: HeaderType) -> None:
        name = self.types[header_type.name]
        out.line(f"/* {comment(header_type.name)} */")
        with out.block(f"struct t_{name}", "};"):
            out.line("bool valid;")
            for field in sorted(header_type.fields, key=lambda f: -type_size(f)):
                member = self.field(header_type, field)
                if field.wide:
                    out.line(f"const uint8_t *{member};")
                    if field.variable:
                        out.line(f"uint32_t {self.length(header_type, field)};")
                else:
                    out.line(f"{integer_type(field.bits)} {member};")
        out.line()
        if self.has_store(header_type):
            with out.block(f"struct w_{name}", "};"):
                for field in header_type.fields:
                    if field.wide:
                        out.line(
                            f"uint8_t {self.field(header_type, field)}[{max(field.bytes, 1)}];"
                        )
            out.line()

    def arrays(self) -> list[tuple[str, HeaderType, int]]:
        """Returns (member, header type, number of elements) of stacks and headers. The number is 0
        for a header, which is not an array."""
        found = [(name, h.type, 0) for h, name in self.headers.items()]
        for stack, name in self.stacks.items():
            if isinstance(stack, Stack):
                found.append((name, stack.type, len(stack.headers)))
            else:
                for i, header in enumerate(stack.unions[0].headers):
                    found.append((self.union_member(stack, i), header.type, len(stack.unions)))
        return found

    def write_packet(self, out: Writer) -> None:
        with out.block("struct packet", "};"):
            out.line("struct flow flow;")
            for stack in self.stacks:
                out.line(f"uint32_t {self.next(stack)[3:]};")
            for member, header_type, size in self.arrays():
                array = f"[{size}]" if size else ""
                out.line(f"struct t_{self.types[header_type.name]} {member}{array};")
        out.line()

    def write_store(self, out: Writer) -> None:
        with out.block("struct store", "};"):
            out.line("uint8_t unused;")
            for member, header_type, size in self.arrays():
                if self.has_store(header_type):
                    array = f"[{size}]" if size else ""
                    out.line(f"struct w_{self.types[header_type.name]} {member}{array};")
        out.line()

    def write_initial(self, out: Writer) -> None:
        widest = [f.bytes for t in self.program.header_types.values() for f in t.fields if f.wide]
        out.line(f"static const uint8_t zeros[{max([1, *widest])}] __attribute__((unused));")
        out.line()
        for header_type in self.program.header_types.values():
            name = self.types[header_type.name]
            wide = [self.field(header_type, f) for f in header_type.fields if f.wide]
            value = ", ".join(f".{m} = zeros" for m in wide) or "0"
            out.line(f"#define ZERO_{name} {{{value}}}")
            unused = "__attribute__((unused))"
            out.line(f"static const struct t_{name} zero_{name} {unused} = ZERO_{name};")
        out.line()
        with out.block("static const struct packet initial_packet =", "};"):
            out.line(".flow = {0},")
            metadata = {self.headers[h] for h in self.headers if h.metadata}
            for member, header_type, size in self.arrays():
                zero = f"ZERO_{self.types[header_type.name]}"
                if self.has_store(header_type):
                    value = f"{{{', '.join([zero] * size)}}}" if size else zero
                    out.line(f".{member} = {value},")
                if member in metadata:
                    out.line(f".{member}.valid = true,")
        out.line()

    def write_accessors(self, out: Writer) -> None:
        """Writes set_<name> for all standard fields, and get_<name> for those that the target
        reads."""
        for name in STANDARD_FIELDS:
            self.write_setter(out, name)
        for name in ("egress_spec", "mcast_grp", "priority"):
            self.write_getter(out, name)
        parts = [self.standard(n) for n in QUEUEING]
        with out.function(
            "static inline void set_queueing(struct packet *k, uint64_t now_us, uint64_t priority)"
        ):
            if all(parts):
                out.line("set_enq_timestamp(k, now_us);")
                for name in QUEUEING[1:]:
                    out.line(f"set_{name}(k, 0);")
                out.line("set_qid(k, priority);")
            else:
                out.line("(void)k, (void)now_us, (void)priority;")

    def write_setter(self, out: Writer, name: str) -> None:
        with out.function(f"static inline void set_{name}(struct packet *k, uint64_t v)"):
            found = self.standard(name)
            if found is None:
                out.line("(void)k, (void)v;")
                return
            header, field = found
            member = f"k->{self.member(header)}.{self.field(header.type, field)}"
            out.line(f"{member} = ({integer_type(field.bits)})low_bits(v, {field.bits});")

    def write_getter(self, out: Writer, name: str) -> None:
        with out.function(f"static inline uint64_t get_{name}(const struct packet *k)"):
            found = self.standard(name)
            if found is None:
                out.line("(void)k;")
                out.line("return 0;")
                return
            header, field = found
            out.line(f"return k->{self.member(header)}.{self.field(header.type, field)};")


def type_size(field: Field) -> int:
    return 64 if field.wide else type_bits(field.bits)


def place_registers(
    program: Program,
) -> tuple[dict[Register, RegisterPlace], list[int], list[int]]:
    """Returns the place of each register. Registers with equal numbers of cells form a group, in
    which the cells with the same index lie together. Integers come first (largest
    alignment first), and then the wide registers in the program's order."""
    by_size: dict[int, list[Register]] = {}
    for register in program.registers.values():
        by_size.setdefault(register.size, []).append(register)
    places: dict[Register, RegisterPlace] = {}
    strides = []
    for group, members in enumerate(by_size.values()):
        offset = 0
        for register in sorted(members, key=lambda r: -type_bits(r.bits) if r.bits <= 64 else 0):
            native = register.bits <= 64
            if not native and offset % 64 and register.bytes >= 64:
                offset += 64 - offset % 64
            places[register] = RegisterPlace(group, offset, native)
            offset += type_bits(register.bits) // 8 if native else register.bytes
        unit = 64 if offset >= 64 else 8
        strides.append((offset + unit - 1) // unit * unit)
    return places, strides, list(by_size)
