// Arithmetic of 1, 7, 33, 63, 65 and 127 bits wraps at exactly that width.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<1> a; bit<7> b; bit<33> c; bit<63> d; bit<65> e; bit<127> f; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.a = h.d.a + 1;
        h.d.b = h.d.b * 3;
        h.d.c = h.d.c - 2;
        h.d.d = h.d.d + h.d.d;
        h.d.e = -h.d.e;
        h.d.f = ~h.d.f + (bit<127>)h.d.b;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
