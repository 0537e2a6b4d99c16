// A parser may apply another parser.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> kind; bit<8> a; }
header extra_t { bit<8> b; }
struct headers_t { data_t d; extra_t e; }
struct meta_t { }

parser Extra(packet_in p, out extra_t e, in bit<8> kind) {
    state start {
        transition select(kind) { 1: take; default: accept; }
    }
    state take { p.extract(e); transition accept; }
}

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Extra() extra;
    state start {
        p.extract(h.d);
        extra.apply(p, h.e, h.d.kind);
        transition accept;
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.a = h.e.isValid() ? h.e.b : 8w0xee;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
