"""Writes the C file of a program: the generated parts and the runtime's headers, in the order in
which they depend on each other."""

from __future__ import annotations

from p4native.switch.detail import Detail
from p4native.switch.program import Program
from p4native.switch.translate.actions import ActionWriter
from p4native.switch.translate.calculations import CalculationWriter
from p4native.switch.translate.control import ControlWriter
from p4native.switch.translate.deparser import write_deparser, write_metadata, write_samples
from p4native.switch.translate.headers import HeaderFunctions
from p4native.switch.translate.layout import Layout
from p4native.switch.translate.opaque_string import with_opaque_strings
from p4native.switch.translate.parser import ParserWriter
from p4native.switch.translate.steps import Steps
from p4native.switch.translate.tables import write_shapes
from p4native.switch.translate.writer import Writer, comment

BEFORE_LAYOUT = (
    "pipeline.h",
    "bytes.h",
    "wide.h",
    "lanes.h",
    "hash.h",
    "entries.h",
    "profile.h",
    "value_set.h",
    "packet.h",
)


def translate(program: Program, detail: Detail = Detail.NOTHING, sources: bool = False) -> str:
    """Returns the C text of a program, which includes headers of ../runtime by name.
    sources: whether the text has the original P4 lines as comments."""
    out = Writer(detail, sources)
    program = with_opaque_strings(program)
    layout = Layout(program)
    out.line(f"/* Generated from BMv2 JSON: {comment(program.name)} */")
    for header in BEFORE_LAYOUT:
        out.line(f'#include "{header}"')
    out.line('#include "replicate.h"')
    out.line(f"#define DETAIL {detail.value}")
    out.line()
    layout.write(out)
    out.line('#include "state.h"')
    out.line('#include "messages.h"')
    out.line()
    write_arrays(layout, out)
    write_shapes(layout, out)
    packet_types = {h.type.name for h in program.headers.values() if not h.metadata}
    for header_type in program.header_types.values():
        functions = HeaderFunctions(layout, out, header_type)
        functions.write(metadata_only=header_type.name not in packet_types)
        Steps(layout, out).write_show(header_type)
    layout.write_accessors(out)
    for calculation in program.calculations.values():
        CalculationWriter(layout, out, calculation).write()
    for action in program.actions:
        ActionWriter(layout, out, action.params).write(action)
    ParserWriter(layout, out).write()
    for name, control in (("ingress", program.ingress), ("egress", program.egress)):
        ControlWriter(layout, out, name, control).write()
    write_deparser(layout, out)
    write_metadata(layout, out)
    write_samples(layout, out)
    out.line('#include "traffic.h"')
    out.line('#include "control.h"')
    return out.text()


def write_arrays(layout: Layout, out: Writer) -> None:
    """Writes the sizes of counters, meters, value sets and registers, and the place of each
    register."""
    program = layout.program
    sizes = "".join(f"{c.size}, " for c in program.counters.values())
    out.line(f"static const uint32_t counter_sizes[] = {{{sizes}0}};")
    meters = "".join(f"{m.size}, " for m in program.meters.values())
    out.line(f"static const uint32_t meter_sizes[] = {{{meters}0}};")
    sets = "".join(f"{s.bytes}, " for s in program.value_sets.values())
    out.line(f"static const uint32_t value_set_bytes[] = {{{sets}0}};")
    with out.block("static const struct register_group register_groups[] =", "};"):
        for stride, size in zip(layout.group_strides, layout.group_sizes, strict=True):
            out.line(f"{{{stride}, {size}}},")
        out.line("{0},")
    with out.block("static const struct register_shape register_shapes[] =", "};"):
        for register, place in layout.register_places.items():
            native = str(place.native).lower()
            shape = f"{{{place.group}, {place.offset}, {register.bits}, {native}}}"
            out.line(f"[{register.index}] = {shape}, /* {comment(register.name)} */")
        out.line(f"[{len(program.registers)}] = {{0}},")
    out.line()
    with out.function(
        "static inline uint8_t *register_element"
        "(const struct pipeline *p, unsigned int group, uint64_t index)"
    ):
        out.line("return p->registers[group] + index * register_groups[group].stride;")
