// Directioned parameters are copied in and out; directionless ones come from the entry.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> c; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action mix(in bit<8> from, inout bit<8> both, out bit<8> to, bit<8> k) {
        to = from + both;
        both = both + k;
    }
    action swap(inout bit<8> x, inout bit<8> y) {
        bit<8> old = x;
        x = y;
        y = old;
    }
    table t {
        key = { h.d.a: exact; }
        actions = { mix(h.d.a, h.d.b, h.d.c); NoAction; }
        default_action = NoAction();
    }
    apply {
        t.apply();
        if (h.d.a == 9) {
            swap(h.d.b, h.d.c);
            swap(h.d.a, h.d.b);
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
