// int<W> header fields: comparison, negation, widening, keys.
#include <core.p4>
#include <v1model.p4>

header data_t { int<16> a; int<16> b; bit<8> larger; bit<8> hit; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action mark() { h.d.hit = 1; }
    table t {
        key = { h.d.a: exact; }
        actions = { mark; NoAction; }
        default_action = NoAction();
    }
    apply {
        h.d.larger = h.d.a > h.d.b ? 8w1 : 0;
        t.apply();
        h.d.b = -h.d.a;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
