// select on several values with masks, in order, with a default.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> way; }
struct headers_t { data_t d; }
struct meta_t { bit<8> way; }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.d);
        transition select(h.d.a, h.d.b) {
            (1, 2): exact;
            (1, _): any_b;
            (0x80 &&& 0xf0, 0x01 &&& 0x01): masked;
            default: other;
        }
    }
    state exact { m.way = 1; transition accept; }
    state any_b { m.way = 2; transition accept; }
    state masked { m.way = 3; transition accept; }
    state other { m.way = 4; transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.way = m.way; s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
