"""Makes a program of any length, as large programs are: many headers, actions, tables and
registers."""

from __future__ import annotations

_BEGIN = """#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
"""
_HEADER = """
// Values of kind {n}.
header values{n}_t {{
    bit<32> slot;
    bit<16> tag;
    bit<8>  kind;
    bit<8>  flags;
    bit<32> first;
    bit<32> second;
}}
const bit<16> TYPE{n} = 16w{number};
"""
_PARSER = """
struct metadata_t {{ bit<32> sum; bit<1> seen; bit<9> port; }}
struct headers_t {{
    ethernet_t ethernet;
{fields}}}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {{
    state start {{
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {{
{cases}            default: accept;
        }}
    }}
{states}}}
"""
_CONTROL = """
control Add{n}(inout headers_t hdr, inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {{
    register<bit<32>>(1024) sums;
    counter(512, CounterType.packets) seen;
    action forward(bit<9> port) {{
        standard_metadata.egress_spec = port;
        meta.port = port;
    }}
    action drop() {{
        mark_to_drop(standard_metadata);
    }}
    table ports {{
        key = {{
            hdr.values{n}.tag: exact;
            hdr.values{n}.kind: ternary;
        }}
        actions = {{ forward; drop; NoAction; }}
        size = 64;
        default_action = drop();
    }}
    apply {{
        if (hdr.values{n}.isValid() && hdr.values{n}.slot < 1024) {{
            bit<32> sum;
            sums.read(sum, hdr.values{n}.slot);
            sum = sum + hdr.values{n}.first;
            if (hdr.values{n}.flags[0:0] == 1) {{
                sum = sum - hdr.values{n}.second;
            }} else {{
                meta.seen = 1;
            }}
            sums.write(hdr.values{n}.slot, sum);
            hdr.values{n}.first = sum;
            meta.sum = meta.sum |+| sum;
            seen.count((bit<32>) standard_metadata.ingress_port);
            ports.apply();
        }}
    }}
}}
"""
_END = """
control MyIngress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {{
{instances}    apply {{
{calls}    }}
}}
control MyEgress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {{ apply {{ }} }}
control Checksum(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control Deparse(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}

V1Switch(Parse(), Checksum(), MyIngress(), MyEgress(), Checksum(), Deparse()) main;
"""


def program_text(lines: int) -> str:
    """Returns a program without errors of at least `lines` lines, and as few as possible."""
    kinds = 1
    while (text := _text(kinds)).count("\n") < lines:
        kinds += 1
    return text


def _text(kinds: int) -> str:
    numbers = range(kinds)
    fields = "".join(f"    values{n}_t values{n};\n" for n in numbers)
    cases = "".join(f"            TYPE{n}: parse{n};\n" for n in numbers)
    states = "".join(
        f"    state parse{n} {{\n        packet.extract(hdr.values{n});\n"
        "        transition accept;\n    }\n"
        for n in numbers
    )
    instances = "".join(f"    Add{n}() add{n};\n" for n in numbers)
    calls = "".join(f"        add{n}.apply(hdr, meta, standard_metadata);\n" for n in numbers)
    return (
        _BEGIN
        + "".join(_HEADER.format(n=n, number=0x8000 + n) for n in numbers)
        + _PARSER.format(fields=fields, cases=cases, states=states)
        + "".join(_CONTROL.format(n=n) for n in numbers)
        + _END.format(instances=instances, calls=calls)
    )
