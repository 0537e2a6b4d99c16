// const, literals of every base and width, and arithmetic of compile-time integers.
#include <core.p4>
#include <v1model.p4>

const bit<8> SEVEN = 7;
const int BIG = (1 << 70) - 1;
const bit<16> MIX = 0b1010_0000_1111_0000;
header data_t { bit<8> a; bit<16> b; bit<8> c; bit<8> d; bit<8> e; bit<72> f; int<8> g; bit<8> i; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    const bit<8> local_constant = SEVEN * 3;
    apply {
        h.d.a = SEVEN;
        h.d.b = MIX;
        h.d.c = 0o17;
        h.d.d = 8w0xA_5;
        h.d.e = local_constant;
        h.d.f = BIG;
        h.d.g = -8s3;
        h.d.i = (17 / 5) * 10 + 17 % 5;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
