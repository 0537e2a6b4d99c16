// |+| and |-| stop at the ends of the type.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> up; bit<8> down; int<8> c; int<8> d; int<8> sup; int<8> sdown; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.up = h.d.a |+| h.d.b;
        h.d.down = h.d.a |-| h.d.b;
        h.d.sup = h.d.c |+| h.d.d;
        h.d.sdown = h.d.c |-| h.d.d;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
