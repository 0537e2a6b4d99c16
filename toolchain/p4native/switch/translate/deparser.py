"""Translates the deparser, field lists, and everything else that works on all headers of a
packet."""

from __future__ import annotations

from p4native.switch.storage import Field, Header
from p4native.switch.translate.actions import ActionWriter
from p4native.switch.translate.calculations import write_update
from p4native.switch.translate.layout import Layout
from p4native.switch.translate.neighbours import each, runs
from p4native.switch.translate.packing import Piece, write_pieces
from p4native.switch.translate.steps import Steps
from p4native.switch.translate.writer import Writer, comment


def write_deparser(layout: Layout, out: Writer) -> None:
    """Writes deparse(), which updates checksums and runs primitives. Also writes headers_length()
    and emit_headers(), which measure and write the headers that remain valid."""
    deparser = layout.program.deparser
    with out.function("static void deparse(struct pipeline *p, struct packet *k, struct store *s)"):
        out.line("(void)p, (void)k, (void)s;")
        write_update(layout, out)
        for primitive in deparser.primitives:
            with out.block(""):
                ActionWriter(layout, out).primitive(primitive)
        Steps(layout, out).emitted(deparser.headers)
    with out.function("static inline uint32_t headers_length(const struct packet *k)"):
        out.line("uint32_t length = 0;")
        out.line()
        out.line("(void)k;")
        for first, count in runs(deparser.headers):
            with each(layout, out, first, count) as member:
                out.line(f"if ({member}.valid)")
                out.line(f"\tlength += size_{layout.types[first.type.name]}(&{member});")
        out.line("return length;")
    with out.function("static inline void emit_headers(const struct packet *k, uint8_t *d)"):
        out.line("(void)k, (void)d;")
        for first, count in runs(deparser.headers):
            with each(layout, out, first, count) as member:
                out.line(f"if ({member}.valid)")
                out.line(f"\td = emit_{layout.types[first.type.name]}(&{member}, d);")


def write_metadata(layout: Layout, out: Writer) -> None:
    """Writes reset_metadata() and copy_field_list()."""
    with out.function("static inline void reset_metadata(struct packet *k)"):
        out.line("(void)k;")
        for header in layout.program.headers.values():
            if header.metadata:
                member = layout.member(header)
                out.line(f"k->{member} = initial_packet.{member};")
    with out.function(
        "static inline void copy_field_list(uint16_t list, struct packet *k, struct store *s, "
        "const struct packet *from)"
    ):
        out.line("(void)k, (void)s, (void)from;")
        with out.block("switch (list)"):
            for field_list in layout.program.field_lists.values():
                if field_list.id > 0xFFFF:
                    continue
                out.line(f"case {field_list.id}:")
                for header, field in field_list.fields:
                    write_copy(layout, out, header, field)
                out.line("\tbreak;")
            out.line("default:")
            out.line("\tbreak;")


def write_samples(layout: Layout, out: Writer) -> None:
    """Writes learn_list_bytes[] and write_sample(), which give the length and the fields of a
    digest."""
    lists = layout.program.learn_lists
    sizes = "".join(f"{sum(f.bytes for _, f in learned.fields)}, " for learned in lists)
    out.line(f"static const uint32_t learn_list_bytes[] = {{{sizes}0}};")
    with out.function(
        "static inline void write_sample(uint32_t list, const struct packet *k, uint8_t *d)"
    ):
        out.line("(void)k, (void)d;")
        with out.block("switch (list)"):
            for learned in lists:
                out.line(f"case {learned.index}: /* {comment(learned.name)} */")
                pieces = [sample_piece(layout, h, f) for h, f in learned.fields]
                write_pieces(out, "d", pieces)
                out.line("break;")
            out.line("default:")
            out.line("break;")


def sample_piece(layout: Layout, header: Header, field: Field) -> Piece:
    access = f"k->{layout.member(header)}.{layout.field(header.type, field)}"
    if field.wide:
        return Piece(access, 8 * field.bytes, wide=True)
    return Piece(f"(uint64_t){access}", 8 * field.bytes)


def write_copy(layout: Layout, out: Writer, header: Header, field: Field) -> None:
    access = f"{layout.member(header)}.{layout.field(header.type, field)}"
    if not field.wide:
        out.line(f"\tk->{access} = from->{access};")
        return
    size = str(field.bytes)
    if field.variable:
        size = f"from->{layout.member(header)}.{layout.length(header.type, field)}"
        out.line(f"\tk->{layout.member(header)}.{layout.length(header.type, field)} = {size};")
    out.line(f"\tmemmove(s->{access}, from->{access}, {size});")
    out.line(f"\tk->{access} = s->{access};")
