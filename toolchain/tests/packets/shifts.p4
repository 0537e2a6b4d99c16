// Shifts by constants and by fields; shifting by the width or more leaves nothing (or the sign).
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> n; bit<8> left; bit<8> right; int<8> arithmetic; bit<8> by_const; bit<16> widened; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.left = h.d.a << h.d.n;
        h.d.right = h.d.a >> h.d.n;
        h.d.arithmetic = (int<8>)h.d.a >> h.d.n;
        h.d.by_const = h.d.a << 3;
        h.d.widened = (bit<16>)h.d.a << h.d.n;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
