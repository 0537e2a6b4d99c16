// An assignment reads its whole right side before it writes, also when both are the same wide field.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<256> w; bit<256> x; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.a = h.d.a[3:0] ++ h.d.a[7:4];
        h.d.b[7:4] = h.d.b[3:0];
        h.d.w = h.d.w[127:0] ++ h.d.w[255:128];
        h.d.x = (h.d.x << 72) + (h.d.x >> 8);
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
