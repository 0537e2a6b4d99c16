"""A whole random case: a P4 program, lines of a script with its entries, and packets."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from p4native.verification.random_programs.controls import Controls
from p4native.verification.random_programs.expressions import Expressions
from p4native.verification.random_programs.kinds import (
    BOOL,
    CODE,
    COLOUR,
    DECLARED,
    ERROR,
    Bits,
    Function,
    Kind,
    Scalar,
    Scope,
    Source,
    Struct,
    Variable,
    size,
)
from p4native.verification.random_programs.parser import Parsers
from p4native.verification.random_programs.statements import (
    Externs,
    Lines,
    Statements,
    function_text,
)

PORTS = 4
PACKETS = 24
BMV2_ROOM_BYTES = 512
"""The number of bytes by which a packet may grow in BMv2. Growth by more overruns BMv2's buffer."""
HEADER_WIDTHS = (1, 2, 3, 4, 5, 8, 8, 9, 13, 16, 16, 32, 48, 64, 72, 128)
STACK = 4
VARIABLE_BYTES = 1 + 8
LONG_EVERY = 5
"""Of so many seeds the last has varbits of thousands of bits, and packets that fill them."""
LONG_VARBIT_BITS = 8032
LONG_FRAME_BYTES = 2500
GROUPS = ("mc_mgrp_create 1", "mc_node_create 5 1 2", "mc_node_associate 1 0")
SESSIONS = ("mirroring_add 1 3", "mirroring_add 2 0")
FIELD_LIST = 1


@dataclass(frozen=True)
class Case:
    """A random case. program: P4 text, with one statement or brace on each line. commands: the
    script's lines before the packets. packets: (port, frame)."""

    seed: int
    program: str
    commands: tuple[str, ...]
    packets: tuple[tuple[int, bytes], ...]

    def script(self) -> str:
        """Returns the script without expectations."""
        return "\n".join([*self.commands, *(f"packet {p} {f.hex()}" for p, f in self.packets), ""])


def draw_case(seed: int) -> Case:
    """Returns the case of a seed, which is always the same."""
    return _Draw(seed).case()


@dataclass
class _Draw:
    """The state while a case is being drawn."""

    seed: int
    types: dict[str, Struct] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = Source(random.Random(self.seed))
        self.random = self.source.random
        chance = self.source.chance
        self.controlled = chance(0.35)  # by commands, which cost a start of BMv2's command line
        self.comes_back = chance(0.3)
        widths = [*HEADER_WIDTHS, 40]
        if chance(0.15):
            widths.append(self.random.choice([200, 512, 1024, 2040]))
        self.widths = tuple(widths)
        self.expressions = Expressions(self.source, self.widths[:-1], chance(0.04))
        self.statements = Statements(self.source, self.expressions)
        self.controls = Controls(self.source, self.statements, self.controlled)

    # -------------------------------------------------------------------- types

    @property
    def long(self) -> bool:
        return self.seed % LONG_EVERY == LONG_EVERY - 1

    def _header(self, name: str, first: list[tuple[str, Scalar | Struct]], count: int) -> Struct:
        members = list(first)
        for i in range(count):
            members.append((f"f{i}", self._scalar()))
        rest = -sum(size(k) for _, k in members) % 8
        if rest:
            members.append(("pad", Bits(rest)))
        return Struct(name, tuple(members), header=True)

    def _scalar(self) -> Scalar:
        if self.source.chance(0.08):
            return CODE
        if self.source.chance(0.05):
            return BOOL
        width = self.random.choice(self.widths)
        return Bits(width, width > 1 and self.source.chance(0.25))

    def _declare_types(self) -> Lines:
        inner = Struct("inner_t", (("p", Bits(8)), ("q", Bits(3, True)), ("r", Bits(5))))
        nested = Struct("nested_t", (("a", Bits(8)), ("b", Bits(16)), ("i", inner)))
        begin: list[tuple[str, Scalar | Struct]] = [("id", Bits(8)), ("sel", Bits(8))]
        if self.source.chance(0.5):
            begin.append(("n", inner))
        base = self._header("h_t", begin, self.random.randrange(3, 8))
        base = replace(base, members=(*base.members, ("sum", Bits(16)), ("crc", Bits(32))))
        x = self._header("x_t", [], self.random.randrange(1, 5))
        z = self._header("z_t", [("v", Bits(8))], self.random.randrange(3))
        element = Struct("e_t", (("v", Bits(8)),), header=True)
        a = self._header("a_t", [("v", Bits(8))], 1)
        b = Struct("b_t", (("v", Bits(16)),), header=True)
        k = self._header("k_t", [("v", Bits(8))], 1)
        members: list[tuple[str, Kind]] = [("a", Bits(8)), ("b", Bits(16)), ("c", COLOUR)]
        members += [("d", CODE), ("e", ERROR), ("g", BOOL), ("n", nested), ("o", nested)]
        members += [(f"m{i}", self._scalar()) for i in range(3)]
        self.types = {
            "h": base,
            "x": x,
            "y": x,
            "z": z,
            "s": element,
            "t": element,
            "a": a,
            "b": b,
            "k": k,
            "inner": inner,
            "nested": nested,
            "meta": Struct("m_t", tuple(members)),
        }
        dumped = [(f"m{i}", k) for i, (_, k) in enumerate(self._dumped())]
        dumped = [(n, Bits(size(k)) if k == BOOL else k) for n, k in dumped]
        dump = Struct("dump_t", tuple(dumped), header=True)
        rest = -size(dump) % 8
        if rest:
            dump = replace(dump, members=(*dump.members, ("pad", Bits(rest))))
        self.types["dump"] = dump
        lines = DECLARED.splitlines()
        for kind in (inner, nested, base, x, z, element, a, b, k, dump):
            lines += kind.declaration()
        lines += [
            "header var_t {",
            "bit<8> len;",
            f"varbit<{LONG_VARBIT_BITS if self.long else 64}> data;",
            "}",
        ]
        lines += ["header_union u_t {", "a_t a;", "b_t b;", "}"]
        lines += self._metadata_text()
        lines += ["struct headers_t {", "h_t h;", "x_t x;", "x_t y;", "z_t z;", "k_t k;"]
        return [
            *lines,
            *["e_t[4] s;", "e_t[4] t;", "u_t u;", "var_t v;", "var_t w;", "dump_t dump;", "}"],
        ]

    def _largest_bytes(self) -> int:
        """Returns the largest size of all headers together."""
        counts = {"s": STACK, "t": STACK}
        headers = {name: kind for name, kind in self.types.items() if kind.header}
        bits = sum(size(kind) * counts.get(name, 1) for name, kind in headers.items())
        return bits // 8 + 2 * VARIABLE_BYTES

    def _metadata_text(self) -> Lines:
        """Returns the metadata's declaration. Some fields are in the field list of copies. The
        field `again` prevents copies from coming back twice."""
        lines = ["struct m_t {", f"@field_list({FIELD_LIST})", "bit<8> again;"]
        for name, kind in self.types["meta"].members:
            if not isinstance(kind, Struct) and self.source.chance(0.4):
                lines.append(f"@field_list({FIELD_LIST})")
            lines.append(f"{kind} {name};")
        return [*lines, "}"]

    def _dumped(self) -> list[tuple[str, Scalar]]:
        """Returns the metadata fields that can be copied into a header, to make them visible."""
        leaves = self.types["meta"].leaves("meta")
        return [(t, k) for t, k in leaves if k not in (COLOUR, ERROR)]

    # ------------------------------------------------------------------- scopes

    def _metadata(self) -> list[Variable]:
        kind = self.types["meta"]
        found = [Variable(t, k) for t, k in kind.leaves("meta")]
        whole = [(n, k) for n, k in kind.members if isinstance(k, Struct)]
        found += [Variable(f"meta.{n}", k) for n, k in whole]
        return found + [Variable(f"meta.{n}.i", self.types["inner"]) for n, _ in whole]

    def _base(self) -> list[Variable]:
        """Returns the fields of h. The program may not write two of them: the packet's number and
        the field for selects."""
        fixed = ("hdr.h.id", "hdr.h.sel")
        leaves = self.types["h"].leaves("hdr.h")
        found = [Variable(t, k, t not in fixed) for t, k in leaves]
        inner = [n for n, k in self.types["h"].members if isinstance(k, Struct)]
        return found + [Variable(f"hdr.h.{n}", self.types["inner"]) for n in inner]

    def _scope(self, functions: tuple[Function, ...], standard: list[Variable]) -> Scope:
        types = self.types
        headers = [Variable(f"hdr.{n}", types[n]) for n in ("x", "y", "z", "k")]
        headers += [Variable(f"hdr.s[{i}]", types["s"]) for i in range(STACK)]
        headers += [Variable(f"hdr.u.{n}", types[n]) for n in "ab"]
        elements = [Variable(f"hdr.t[{i}].v", Bits(8)) for i in range(STACK)]
        known = [*self._metadata(), *self._base(), *elements, *standard]
        return Scope(tuple(known), tuple(headers), functions)

    def _functions(self) -> tuple[tuple[Function, ...], Lines]:
        kinds: list[Kind] = [Bits(8), Bits(8), Bits(16), Bits(8, True), self.types["inner"]]
        made: list[Function] = []
        lines: Lines = []
        for _ in range(self.random.randrange(4)):
            parameters = tuple(
                (self.random.choice(["in", "inout", "out"]), self.random.choice(kinds))
                for _ in range(self.random.randrange(1, 4))
            )
            parameters = tuple(
                ("in" if isinstance(k, Struct) and d == "out" else d, k) for d, k in parameters
            )
            results: tuple[Scalar, ...] = (Bits(8), Bits(16), Bits(8, True), BOOL)
            result = self.random.choice(results)
            made.append(Function(self.source.name("f"), parameters, result))
            lines += function_text(made[-1], self.statements, ())
        return tuple(made), lines

    # ----------------------------------------------------------------- controls

    def _settle(self) -> Lines:
        """Returns statements after which h and t are valid."""
        lines: Lines = []
        targets = [("hdr.h", self.types["h"])]
        targets += [(f"hdr.t[{i}]", self.types["t"]) for i in range(STACK)]
        for text, kind in targets:
            values = self.statements.fill(text, kind, Scope(()))
            lines += [f"if (!{text}.isValid()) {{", f"{text}.setValid();", *values, "}"]
        return lines

    def _registers(self) -> tuple[list[tuple[str, Bits, int]], Lines]:
        made = []
        for name in ("r0", "r1"):
            shape = Bits(self.random.choice([8, 16, 16, self.random.choice(self.widths)]))
            made.append((name, shape, 4))
        return made, [f"register<{k}>({n}) {name};" for name, k, n in made]

    def _main_control(self, scope: Scope, egress: bool) -> Lines:
        """Draws a pipeline's control: externs, actions and tables, and statements that make all
        results visible."""
        externs, lines = Externs(), ["counter(8, CounterType.packets_and_bytes) cnt;"]
        externs.counters.append("cnt")
        if self.source.chance(0.3):
            lines.append("meter(8, MeterType.bytes) mtr;")
            externs.meters.append("mtr")
        if not self.comes_back:
            externs.registers, more = self._registers()
            lines += more
        self.statements.cell = "std.egress_port" if egress else "hdr.h.sel"
        externs.traffic = [
            *(lambda text=text: [text] for text in self._plain_traffic(egress)),
            *(lambda text=text: text for text in self._copies(egress)),
        ]
        self.statements.externs = externs
        first = self._settle()
        if not egress:
            first.append(f"std.egress_spec = {self.random.randrange(PORTS)};")
        last = self._dump() if egress else []
        size_ = self.random.randrange(2, 6) if egress else self.random.randrange(4, 12)
        declarations, body = self.controls.draw(scope, size_, first, last)
        return [*lines, *declarations, "apply {", *body, "}"]

    def _plain_traffic(self, egress: bool) -> list[str]:
        copy = "hdr.w = hdr.v;"
        if self.long:
            copy += " hdr.v.setInvalid();"  # two long headers overrun BMv2's buffer
        texts = ["mark_to_drop(std);", copy, "hdr.v.setInvalid();", 'log_msg("here");']
        if not egress:
            port = "std.egress_spec = (bit<9>)hdr.h.sel[1:0];"
            texts += [port, port, port]
            if self.controlled:
                texts.append("std.mcast_grp = 1;")
        if not self.comes_back:
            texts.append(f"truncate(32w{self.random.randrange(1, 80)});")
        return texts

    def _copies(self, egress: bool) -> list[Lines]:
        if not self.comes_back:
            return []
        found = []
        if self.controlled:
            session = self.random.choice([1, 2, 3])
            kind = "E2E" if egress else "I2E"
            call = f"clone_preserving_field_list(CloneType.{kind}, 32w{session}, 8w{FIELD_LIST});"
            found.append(call)
        verb = "recirculate" if egress else "resubmit"
        found.append(f"{verb}_preserving_field_list(8w{FIELD_LIST});")
        return [["if (meta.again == 0) {", "meta.again = 1;", call, "}"] for call in found]

    def _dump(self) -> Lines:
        lines = ["hdr.dump.setValid();"]
        for i, (text, kind) in enumerate(self._dumped()):
            value = f"(bit<1>){text}" if kind == BOOL else text
            lines.append(f"hdr.dump.m{i} = {value};")
        if self.types["dump"].members[-1][0] == "pad":
            lines.append("hdr.dump.pad = 0;")
        return lines

    def _checksums(self, verify: bool) -> Lines:
        """Draws checksums over fields of h, which is valid when a packet leaves."""
        lines = []
        verb = "verify_checksum" if verify else "update_checksum"
        pairs = [("sum", ("csum16", "xor16", "crc16")), ("crc", ("crc32",))]
        for target, algorithms in pairs:
            if not self.source.chance(0.4):
                continue
            known = self.types["h"].leaves("hdr.h")
            fields = [t for t, k in known if isinstance(k, Bits) and t[6:] not in ("sum", "crc")]
            data = self.random.sample(fields, self.random.randrange(1, len(fields)))
            if self.source.chance(0.3):
                data.append("16w0xabcd")
            payload = "_with_payload" if self.source.chance(0.3) else ""
            test = self.random.choice(["true", "hdr.h.isValid()", "meta.g", "hdr.h.sel == 1"])
            algorithm = self.random.choice(algorithms)
            arguments = f"{test}, {{ {', '.join(data)} }}, hdr.h.{target}"
            lines.append(f"{verb}{payload}({arguments}, HashAlgorithm.{algorithm});")
        return lines

    def _deparser(self) -> Lines:
        if self.source.chance(0.4):
            return ["packet.emit(hdr);"]
        names = ["x", "y", "z", "k", "s", "t", "u", "v", "w", "s[1]"]
        self.random.shuffle(names)
        return [f"packet.emit(hdr.{n});" for n in ["dump", "h", *names]]

    # ------------------------------------------------------------------ the case

    def case(self) -> Case:
        types = self._declare_types()
        while self._largest_bytes() > BMV2_ROOM_BYTES:
            self.widths = HEADER_WIDTHS
            types = self._declare_types()
        functions, function_lines = self._functions()
        port = [Variable("std.ingress_port", Bits(9), False)]
        seen = [
            Variable("std.parser_error", ERROR, False),
            Variable("std.checksum_error", Bits(1), False),
            Variable("std.packet_length", Bits(32), False),
            Variable("std.egress_spec", Bits(9), False),
        ]
        left = [
            Variable("std.egress_port", Bits(9), False),
            Variable("std.egress_rid", Bits(16), False),
            Variable("std.instance_type", Bits(32), False),
        ]
        parsers = Parsers(self.source, self.statements, self.types, self.long)
        states = parsers.draw(Scope((*self._metadata(), *self._base(), *port)))
        ingress = self._main_control(self._scope(functions, [*port, *seen]), False)
        egress = self._main_control(self._scope(functions, [*port, *left]), True)
        state = "inout headers_t hdr, inout m_t meta"
        standard = "inout standard_metadata_t std"
        lines = ["#include <core.p4>", "#include <v1model.p4>", *types, *function_lines]
        lines += [*parsers.top, *self.controls.top]
        parameters = f"packet_in packet, out headers_t hdr, inout m_t meta, {standard}"
        lines += [f"parser P({parameters}) {{", *states, "}"]
        lines += [f"control V({state}) {{", "apply {", *self._checksums(True), "}", "}"]
        lines += [f"control I({state}, {standard}) {{", *ingress, "}"]
        lines += [f"control E({state}, {standard}) {{", *egress, "}"]
        lines += [f"control C({state}) {{", "apply {", *self._checksums(False), "}", "}"]
        lines += ["control D(packet_out packet, in headers_t hdr) {", "apply {"]
        lines += [*self._deparser(), "}", "}", "V1Switch(P(), V(), I(), E(), C(), D()) main;", ""]
        commands = [*GROUPS, *SESSIONS, *self.controls.entries] if self.controlled else []
        return Case(self.seed, "\n".join(lines), tuple(commands), self._packets())

    def _packets(self) -> tuple[tuple[int, bytes], ...]:
        """Draws packets. They begin with the fields of h, whose values are often constants of the
        program, and continue with similar bytes. Some packets are cut."""
        packets = []
        for number in range(PACKETS):
            bits = 0
            for path, kind in self.types["h"].leaves(""):
                width = size(kind)
                value = number if path == ".id" else self.source.number(width)
                bits = bits << width | value
            head = bits.to_bytes(size(self.types["h"]) // 8, "big")
            behind = bytes(self.source.number(8) for _ in range(self.random.choice([4, 40, 120])))
            frame = head + behind
            if self.long and number % 2:
                frame = (frame * LONG_FRAME_BYTES)[:LONG_FRAME_BYTES]
            if self.source.chance(0.15):
                frame = frame[: self.random.randrange(1, len(frame))]
            packets.append((self.random.randrange(PORTS), frame))
        return tuple(packets)
