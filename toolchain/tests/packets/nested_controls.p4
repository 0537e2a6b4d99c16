// Sub-controls: in, inout, out parameters, constructor parameters, two instances with tables of their own.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> c; }
#include "include/one_header.p4"

control Scale(in bit<8> x, inout bit<8> sum, out bit<8> last)(bit<8> factor) {
    action add_to(bit<8> v) { sum = sum + v; }
    table t {
        key = { x: exact @name("x"); }
        actions = { add_to; NoAction; }
        default_action = NoAction();
    }
    apply {
        t.apply();
        last = x * factor;
        sum = sum + last;
    }
}

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Scale(2) twice;
    Scale(3) thrice;
    apply {
        bit<8> last;
        twice.apply(h.d.a, h.d.b, last);
        h.d.c = last;
        thrice.apply(h.d.a, h.d.b, last);
        h.d.c = h.d.c + last;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
