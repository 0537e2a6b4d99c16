// & | ^ ~ on bit<W> and on int<W>.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> o_and; bit<8> o_or; bit<8> o_xor; bit<8> o_not; int<8> o_signed; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.o_and = h.d.a & h.d.b;
        h.d.o_or = h.d.a | h.d.b;
        h.d.o_xor = h.d.a ^ h.d.b;
        h.d.o_not = ~h.d.a;
        h.d.o_signed = (int<8>)h.d.a & -8s16;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
