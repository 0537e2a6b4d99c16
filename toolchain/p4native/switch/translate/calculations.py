"""Translates calculations, which gather their input in p->scratch and hash it, and the checksums
that use them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from p4native.switch.bmv2_json.calculations import input_bits
from p4native.switch.model import Calculation, CalculationInput, Checksum
from p4native.switch.storage import Field, Header
from p4native.switch.translate.expressions import Expressions
from p4native.switch.translate.layout import Layout, integer_type
from p4native.switch.translate.neighbours import each, follows
from p4native.switch.translate.packing import Piece, byte_runs, joined, write_pieces
from p4native.switch.translate.writer import Writer, comment, u64


def call(calculation: Calculation) -> str:
    return f"calculate_{calculation.index}(p, k)"


class CalculationWriter:
    """A writer of calculate_<index>(), which returns the 64-bit result of one calculation on a
    packet."""

    def __init__(self, layout: Layout, out: Writer, calculation: Calculation) -> None:
        self.layout = layout
        self.out = out
        self.calculation = calculation
        groups = groupby(self.inputs(), key=self.group_of)
        aligned = all(self.group_bits(list(items)) % 8 == 0 for _, items in groups)
        self.in_place = aligned and calculation.algorithm in ("csum16", "cksum16")
        """Whether fields are summed in their places, without being gathered first."""
        self.members: dict[Header, str] = {}
        """The C lvalues of headers, where these are not fixed."""

    def inputs(self) -> list[CalculationInput]:
        """Returns all inputs except the payload."""
        return [i for i in self.calculation.inputs if i.kind != "payload"]

    def write(self) -> None:
        out = self.out
        inputs = self.inputs()
        with_payload = len(inputs) != len(self.calculation.inputs)
        groups = [(key, list(items)) for key, items in groupby(inputs, key=self.group_of)]
        out.line(f"/* {comment(self.calculation.name)} */")
        with out.function(
            f"static __attribute__((noinline, unused)) uint64_t calculate_{self.calculation.index}"
            "(struct pipeline *p, const struct packet *k)"
        ):
            out.line("uint8_t *d = p->scratch;")
            if self.in_place:
                out.line("struct csum c = csum_begin(p, k);")
            out.line()
            out.line("(void)k;")
            if all(self.group_bits(items) % 8 == 0 for _, items in groups):
                for run in self.runs([items for _, items in groups]):
                    self.write_run(run)
            else:
                self.write_unaligned(groups)
            if with_payload:
                self.write_payload()
            if self.in_place:
                out.line("return csum_end(&c);")
            else:
                algorithm = self.calculation.algorithm
                out.line(f"return hash_{algorithm}(p->scratch, (uint32_t)(d - p->scratch));")

    def add_gathered(self) -> None:
        """Writes code that adds the bytes gathered in p->scratch to the sum and makes p->scratch
        free again."""
        self.out.line("csum_gathered(&c, p->scratch, (uint32_t)(d - p->scratch));")
        self.out.line("d = p->scratch;")

    def group_of(self, item: CalculationInput) -> int:
        """Returns the number of the header to which an input belongs, or -1 for inputs without such
        a header, such as constants. The input is skipped if the header is invalid."""
        return -1 if item.header is None or item.header.metadata else item.header.index

    def group_bits(self, items: list[CalculationInput]) -> int:
        return sum(self.bits(i) for i in items)

    def bits(self, item: CalculationInput) -> int:
        """Returns the width of an input in bits. Headers and fields of variable width count as 0,
        because they are whole bytes."""
        if item.kind == "header":
            return 0
        if item.kind == "constant":
            return item.bits
        if item.field is None:
            return 1
        return 0 if item.field.variable else item.field.bits

    def member(self, header: Header) -> str:
        return self.members.get(header) or f"k->{self.layout.member(header)}"

    def piece(self, item: CalculationInput) -> Piece:
        if item.kind == "constant":
            if item.bits <= 64:
                return Piece(u64(item.value), item.bits)
            name = self.out.temporary("c")
            data = item.value.to_bytes((item.bits + 7) // 8, "big")
            array = ", ".join(f"{byte:#x}" for byte in data)
            self.out.line(f"static const uint8_t {name}[{len(data)}] = {{{array}}};")
            return Piece(name, item.bits, wide=True)
        assert item.header
        if item.field is None:
            return Piece(f"(uint64_t){self.member(item.header)}.valid", 1)
        access = f"{self.member(item.header)}.{self.layout.field(item.header.type, item.field)}"
        text = access if item.field.wide else f"(uint64_t){access}"
        return Piece(text, item.field.bits, item.field.wide)

    def runs(self, groups: list[list[CalculationInput]]) -> Iterator[list[list[CalculationInput]]]:
        """Yields runs of groups that have the same inputs of neighbours in a stack."""
        run: list[list[CalculationInput]] = []
        for group in groups:
            if run and not self.continues(group, run[-1]):
                yield run
                run = []
            run.append(group)
        if run:
            yield run

    def continues(self, group: list[CalculationInput], before: list[CalculationInput]) -> bool:
        header, other = group[0].header, before[0].header
        if header is None or other is None or not follows(header, other):
            return False
        return [(i.kind, i.field) for i in group] == [(i.kind, i.field) for i in before]

    def write_run(self, run: list[list[CalculationInput]]) -> None:
        """Writes code that appends the inputs of a run of groups."""
        items = run[0]
        header = items[0].header
        if header is None or self.group_of(items[0]) < 0:
            with self.out.block(""):
                self.append(items)
            return
        with each(self.layout, self.out, header, len(run)) as member:
            self.members[header] = member
            with self.out.block(f"if ({member}.valid)"):
                self.append(items)
        del self.members[header]

    def append(self, items: list[CalculationInput]) -> None:
        pieces: list[Piece] = []
        for item in items:
            if item.kind == "header":
                self.flush(pieces)
                assert item.header
                name = self.layout.types[item.header.type.name]
                self.out.line(f"d = emit_{name}(&{self.member(item.header)}, d);")
                if self.in_place:
                    self.add_gathered()
            elif item.field and item.field.variable:
                self.flush(pieces)
                assert item.header
                length = self.layout.length(item.header.type, item.field)
                access = self.layout.field(item.header.type, item.field)
                member = self.member(item.header)
                if self.in_place:
                    self.out.line(f"csum_add(&c, {member}.{access}, {member}.{length});")
                else:
                    self.out.line(f"memcpy(d, {member}.{access}, {member}.{length});")
                    self.out.line(f"d += {member}.{length};")
            else:
                pieces.append(self.piece(item))
        self.flush(pieces)

    def sum_pieces(self, pieces: list[Piece]) -> None:
        """Writes code that adds pieces to a sum. Together, the pieces must be whole bytes. Where
        possible, they are not stored first."""
        for run in byte_runs(pieces):
            bits = sum(p.bits for p in run)
            assert bits % 8 == 0
            if len(run) == 1 and run[0].wide:
                self.out.line(f"csum_add(&c, {run[0].text}, {bits // 8});")
            elif bits <= 64 and not any(p.wide for p in run):
                self.out.line(f"csum_value(&c, {joined(run)}, {bits // 8});")
            else:
                write_pieces(self.out, "d", run)
                self.out.line(f"d += {bits // 8};")
                self.add_gathered()

    def flush(self, pieces: list[Piece]) -> None:
        if self.in_place:
            self.sum_pieces(pieces)
            pieces.clear()
            return
        write_pieces(self.out, "d", pieces)
        bits = sum(p.bits for p in pieces)
        assert bits % 8 == 0
        if bits:
            self.out.line(f"d += {bits // 8};")
        pieces.clear()

    def write_unaligned(self, groups: list[tuple[int, list[CalculationInput]]]) -> None:
        """Writes code that appends inputs bit by bit. Headers and variable fields begin at the next
        whole byte."""
        out = self.out
        items = [i for _, group in groups for i in group]
        size = sum(map(input_bits, items)) // 8 + len(items)
        out.line("uint32_t bit = 0;")
        out.line()
        out.line(f"memset(d, 0, {size});")
        for header, items in groups:
            condition = f"if ({self.member(items[0].header)}.valid)" if header >= 0 else ""  # type: ignore[arg-type]
            with out.block(condition):
                for item in items:
                    self.write_unaligned_item(item)
        out.line("d += (bit + 7) / 8;")

    def write_unaligned_item(self, item: CalculationInput) -> None:
        out = self.out
        if item.kind == "header" or (item.field and item.field.variable):
            out.line("d += (bit + 7) / 8;")
            out.line("bit = 0;")
            self.append([item])
            return
        piece = self.piece(item)
        name = "store_wide" if piece.wide else "store_bits"
        out.line(f"{name}(d, bit, {piece.bits}, {piece.text});")
        out.line(f"bit += {piece.bits};")

    def write_payload(self) -> None:
        out = self.out
        with out.block(""):
            out.line("uint32_t len = k->flow.payload_len;")
            out.line()
            out.line("if (len > k->flow.truncate)")
            out.line("\tlen = k->flow.truncate;")
            if self.in_place:
                out.line("csum_add(&c, k->flow.payload, len);")
            else:
                out.line("memcpy(d, k->flow.payload, len);")
                out.line("d += len;")


def raw(layout: Layout, header: Header, field: Field) -> str:
    """Returns a field of a header as a C lvalue."""
    return f"k->{layout.member(header)}.{layout.field(header.type, field)}"


def write_verify(layout: Layout, out: Writer) -> None:
    """Writes the C code that verifies checksums once a packet has been parsed. A checksum that is
    wrong sets the flag checksum_error."""
    for checksum in layout.program.checksums:
        if not checksum.verify:
            continue
        with out.block(""):
            conditions = condition(layout, out, checksum)
            if not checksum.header.metadata:
                conditions.insert(0, f"k->{layout.member(checksum.header)}.valid")
            member = raw(layout, checksum.header, checksum.field)
            if checksum.field.wide:
                member = f"wide_slice({member}, {checksum.field.bytes}, 0)"
            differs = f"{call(checksum.calculation)} != {member}"
            out.line(f"if ({' && '.join([*conditions, differs])})")
            out.line("\tk->flow.checksum_error = true;")


def write_update(layout: Layout, out: Writer) -> None:
    """Writes the C code that updates checksums before a packet is deparsed."""
    for checksum in layout.program.checksums:
        if not checksum.update:
            continue
        with out.block(""):
            conditions = condition(layout, out, checksum)
            with out.block(f"if ({' && '.join(conditions) or 'true'})"):
                write_target(layout, out, checksum)


def write_target(layout: Layout, out: Writer, checksum: Checksum) -> None:
    field, member = checksum.field, raw(layout, checksum.header, checksum.field)
    value = call(checksum.calculation)
    if not field.wide:
        out.line(f"{member} = ({integer_type(field.bits)})low_bits({value}, {field.bits});")
        return
    store = f"s->{layout.member(checksum.header)}.{layout.field(checksum.header.type, field)}"
    out.line(f"memset({store}, 0, {field.bytes});")
    out.line(f"store_be({store} + {field.bytes - 8}, {value}, 8);")
    out.line(f"{member} = {store};")


def condition(layout: Layout, out: Writer, checksum: Checksum) -> list[str]:
    if checksum.condition is None:
        return []
    return [Expressions(layout, out).boolean(checksum.condition)]
