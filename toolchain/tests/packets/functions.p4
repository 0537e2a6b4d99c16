// Functions with in and inout parameters, several returns, one calling another.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> big; bit<8> sum; }
#include "include/one_header.p4"

bit<8> larger(in bit<8> x, in bit<8> y) {
    if (x > y) { return x; }
    return y;
}
bit<8> add_limited(inout bit<8> x, in bit<8> limit) {
    x = x + 1;
    return larger(x, limit) - 1;
}

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.big = larger(h.d.a, h.d.b);
        h.d.sum = add_limited(h.d.a, 5) + larger(1, 2);
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
