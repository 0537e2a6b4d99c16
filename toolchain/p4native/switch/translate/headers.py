"""Writes the C functions of each header type: extract_, emit_, copy_, same_, swap_ and
size_<type>."""

from __future__ import annotations

from p4native.switch.storage import Field, HeaderType
from p4native.switch.translate.layout import Layout, integer_type
from p4native.switch.translate.packing import Piece, read_bits, write_pieces
from p4native.switch.translate.writer import Writer


class HeaderFunctions:
    """A writer of the C functions of one header type."""

    def __init__(self, layout: Layout, out: Writer, header_type: HeaderType) -> None:
        self.layout = layout
        self.out = out
        self.type = header_type
        self.name = layout.types[header_type.name]
        self.stored = layout.has_store(header_type)
        self.store = f"struct w_{self.name} *w" if self.stored else "void *w"

    def member(self, field: Field) -> str:
        return self.layout.field(self.type, field)

    def length(self, field: Field) -> str:
        return self.layout.length(self.type, field)

    def write(self, metadata_only: bool) -> None:
        """Writes the functions of the header type. Metadata is never in a packet, and therefore
        needs no size_, extract_ and emit_."""
        if not metadata_only:
            self.write_size()
            self.write_extract()
            self.write_emit()
        self.write_copy()
        self.write_same()
        self.write_swap()

    def write_size(self) -> None:
        with self.out.function(
            f"static inline uint32_t size_{self.name}(const struct t_{self.name} *h)"
        ):
            size = f"{self.type.fixed_bits // 8}u"
            variable = self.type.variable
            if variable is None:
                self.out.line("(void)h;")
            else:
                size += f" + h->{self.length(variable)}"
            self.out.line(f"return {size};")

    def write_extract(self) -> None:
        """Writes extract_<type>(). In it, `d` points to size_<type>() bytes, and `variable` is the
        length in bytes of the variable field."""
        with self.out.function(
            f"static inline void extract_{self.name}(struct t_{self.name} *h, {self.store}, "
            "const uint8_t *d, uint32_t variable)"
        ):
            self.out.line("(void)w, (void)variable;")
            bit = 0
            for field in self.type.fields:
                member = f"h->{self.member(field)}"
                if field.variable:
                    self.out.line(f"{member} = d + {bit // 8};")
                    self.out.line(f"h->{self.length(field)} = variable;")
                    self.out.line(f"d += {bit // 8} + variable;")
                    bit = 0
                    continue
                self.extract_field(field, member, bit)
                bit += field.bits
            self.out.line("h->valid = true;")

    def extract_field(self, field: Field, member: str, bit: int) -> None:
        if not field.wide:
            value = read_bits("d", bit, field.bits)
            self.out.line(f"{member} = ({integer_type(field.bits)}){value};")
        elif bit % 8 == 0 and field.bits % 8 == 0:
            self.out.line(f"{member} = d + {bit // 8};")
        else:
            store = f"w->{self.member(field)}"
            self.out.line(f"load_wide({store}, d, {bit}, {field.bits});")
            self.out.line(f"{member} = {store};")

    def write_emit(self) -> None:
        """Writes emit_<type>(), which writes the header and returns its end."""
        with self.out.function(
            f"static inline uint8_t *emit_{self.name}(const struct t_{self.name} *h, uint8_t *d)"
        ):
            pieces: list[Piece] = []
            for field in self.type.fields:
                member = f"h->{self.member(field)}"
                if field.variable:
                    before = sum(p.bits for p in pieces) // 8
                    write_pieces(self.out, "d", pieces)
                    pieces = []
                    self.out.line(f"memcpy(d + {before}, {member}, h->{self.length(field)});")
                    self.out.line(f"d += {before} + h->{self.length(field)};")
                else:
                    text = member if field.wide else f"(uint64_t){member}"
                    pieces.append(Piece(text, field.bits, field.wide))
            write_pieces(self.out, "d", pieces)
            self.out.line(f"return d + {sum(p.bits for p in pieces) // 8};")

    def write_copy(self) -> None:
        """Writes copy_<type>(), which assigns one header to another. If the source is invalid, only
        the target's validity changes."""
        with self.out.function(
            f"static inline void copy_{self.name}(struct t_{self.name} *h, {self.store}, "
            f"const struct t_{self.name} *from)"
        ):
            self.out.line("(void)w;")
            self.out.line("h->valid = from->valid;")
            with self.out.block("if (from->valid)"):
                for field in self.type.fields:
                    member = self.member(field)
                    if not field.wide:
                        self.out.line(f"h->{member} = from->{member};")
                        continue
                    size = str(field.bytes)
                    if field.variable:
                        size = f"from->{self.length(field)}"
                        self.out.line(f"h->{self.length(field)} = {size};")
                    self.out.line(f"memmove(w->{member}, from->{member}, {size});")
                    self.out.line(f"h->{member} = w->{member};")

    def write_same(self) -> None:
        """Writes same_<type>(), which compares two headers. They are the same if both are valid and
        all their fields are equal."""
        parts = ["a->valid && b->valid"]
        for field in self.type.fields:
            member = self.member(field)
            if field.variable:
                length = self.length(field)
                parts.append(f"a->{length} == b->{length}")
                parts.append(f"!memcmp(a->{member}, b->{member}, a->{length})")
            elif field.wide:
                parts.append(f"!memcmp(a->{member}, b->{member}, {field.bytes})")
            else:
                parts.append(f"a->{member} == b->{member}")
        with self.out.function(
            f"static inline bool same_{self.name}(const struct t_{self.name} *a, "
            f"const struct t_{self.name} *b)"
        ):
            self.out.line("return " + "\n\t\t&& ".join(parts) + ";")

    def write_swap(self) -> None:
        """Writes swap_<type>(), which exchanges two elements of a stack. A pointer into an
        element's part of the store then points to the same bytes in their new place."""
        with self.out.function(
            f"static inline void swap_{self.name}(struct t_{self.name} *a, "
            f"{self.store.replace('*w', '*wa')}, struct t_{self.name} *b, "
            f"{self.store.replace('*w', '*wb')})"
        ):
            self.out.line(f"struct t_{self.name} h = *a;")
            if self.stored:
                self.out.line(f"struct w_{self.name} w = *wa;")
            self.out.line()
            self.out.line("(void)wa, (void)wb;")
            self.out.line("*a = *b;")
            self.out.line("*b = h;")
            if not self.stored:
                return
            self.out.line("*wa = *wb;")
            self.out.line("*wb = w;")
            for field in self.type.fields:
                if field.wide:
                    member = self.member(field)
                    self.out.line(f"if (a->{member} == wb->{member})")
                    self.out.line(f"\ta->{member} = wa->{member};")
                    self.out.line(f"if (b->{member} == wa->{member})")
                    self.out.line(f"\tb->{member} = wb->{member};")
