// select on slices, expressions, enums, concatenations and metadata.
#include <core.p4>
#include <v1model.p4>

enum bit<4> Kind { Small = 1, Large = 2 }
header data_t { Kind kind; bit<4> low; bit<8> a; bit<8> way; }
struct headers_t { data_t d; }
struct meta_t { bit<8> way; bit<8> mode; }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.d);
        m.mode = h.d.a & 0x0f;
        transition select(h.d.kind) {
            Kind.Small: small;
            Kind.Large: large;
            default: accept;
        }
    }
    state small {
        transition select(h.d.a[7:4], m.mode) {
            (0xf, 3): one;
            (_, 3): two;
            default: accept;
        }
    }
    state large {
        transition select(h.d.low ++ h.d.a, h.d.a + 1) {
            (12w0x5ff, 8w0): three;
            default: accept;
        }
    }
    state one { m.way = 1; transition accept; }
    state two { m.way = 2; transition accept; }
    state three { m.way = 3; transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.way = m.way; s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
