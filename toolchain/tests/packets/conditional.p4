// The ?: operator, nested and as an argument.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> clamped; bit<16> spread; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.clamped = h.d.a < 10 ? 8w10 : (h.d.a > 20 ? 8w20 : h.d.a);
        h.d.spread = (h.d.a[0:0] == 1 ? 16w0xff00 : 16w0x00ff) + (bit<16>)h.d.a;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
