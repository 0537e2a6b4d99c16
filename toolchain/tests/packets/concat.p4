// ++ puts the left operand in the high bits.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<4> b; bit<4> c; bit<16> abc; bit<8> cb; bit<24> three; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.abc = h.d.a ++ h.d.b ++ h.d.c;
        h.d.cb = h.d.c ++ h.d.b;
        h.d.three = h.d.a ++ 8w0x7e ++ h.d.a;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
