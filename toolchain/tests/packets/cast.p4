// Casts truncate, zero-extend bit<W> and sign-extend int<W>; bool to bit<1> and back.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<4> cut; bit<4> pad; bit<16> zero; int<16> sign; bit<16> through; bit<8> flag; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.cut = (bit<4>)h.d.a;
        h.d.zero = (bit<16>)h.d.a;
        h.d.sign = (int<16>)(int<8>)h.d.a;
        h.d.through = (bit<16>)(int<16>)(int<8>)h.d.a;
        bool odd = (bool)h.d.a[0:0];
        h.d.flag = 7w0 ++ (bit<1>)odd;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
