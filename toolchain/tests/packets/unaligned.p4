// Fields that straddle bytes, in extract, arithmetic and deparse.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<3> a; bit<13> b; bit<1> c; bit<48> d; bit<7> e; bit<65> f; bit<7> g; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.a = h.d.a + 1;
        h.d.b = h.d.b + 1;
        h.d.c = ~h.d.c;
        h.d.d = h.d.d + 1;
        h.d.e = h.d.e - 1;
        h.d.f = h.d.f + 1;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
