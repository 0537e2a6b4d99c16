// x[hi:lo] reads bits hi..lo.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> a; bit<8> high; bit<8> middle; bit<4> top; bit<4> low; bit<8> one; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.high = h.d.a[15:8];
        h.d.middle = h.d.a[11:4];
        h.d.top = h.d.a[15:12];
        h.d.low = h.d.a[3:0];
        h.d.one = 7w0 ++ h.d.a[8:8];
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
