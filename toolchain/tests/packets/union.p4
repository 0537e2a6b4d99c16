// At most one header of a header_union is valid.
#include <core.p4>
#include <v1model.p4>

header tag_t { bit<8> kind; }
header short_t { bit<8> a; }
header long_t { bit<16> a; }
header_union either_t { short_t s; long_t l; }
struct headers_t { tag_t t; either_t u; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.t);
        transition select(h.t.kind) { 1: short; 2: long; default: accept; }
    }
    state short { p.extract(h.u.s); transition accept; }
    state long { p.extract(h.u.l); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.u.s.isValid()) {
            h.u.l.setValid();
            h.u.l.a = 0x1234;
        } else if (h.u.isValid()) {
            h.u.l.a = h.u.l.a + 1;
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
