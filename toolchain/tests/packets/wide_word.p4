// bit<2048>: arithmetic, slices and masks over 32 machine words.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> op; bit<2048> a; bit<2048> b; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.d.op == 1) {
            h.d.a = h.d.a + h.d.b;
        } else if (h.d.op == 2) {
            h.d.a = h.d.a - h.d.b;
        } else if (h.d.op == 3) {
            h.d.a = h.d.a << 65;
        } else if (h.d.op == 4) {
            h.d.a[231:200] = h.d.b[31:0];
        } else if (h.d.op == 5) {
            h.d.a = ~h.d.a & h.d.b;
        } else if (h.d.op == 6) {
            h.d.a = h.d.a >> 255;
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
