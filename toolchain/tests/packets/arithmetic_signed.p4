// int<W> wraps like bit<W>; its comparisons and right shift see the sign.
#include <core.p4>
#include <v1model.p4>

header data_t { int<8> a; int<8> b; int<8> sum; int<8> product; int<8> shifted; bit<8> less; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.sum = h.d.a + h.d.b;
        h.d.product = h.d.a * h.d.b;
        h.d.shifted = h.d.a >> 1;
        h.d.less = h.d.a < h.d.b ? 8w1 : 8w0;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
