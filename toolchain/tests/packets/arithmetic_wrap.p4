// Sum, difference, product and negation of bit<W> are taken modulo 2^W.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> sum; bit<8> difference; bit<8> product; bit<8> negative; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.sum = h.d.a + h.d.b;
        h.d.difference = h.d.a - h.d.b;
        h.d.product = h.d.a * h.d.b;
        h.d.negative = -h.d.a;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
