// Comparisons of values wider than a machine word.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<128> a; bit<128> b; bit<8> lt; bit<8> eq; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.lt = h.d.a < h.d.b ? 8w1 : 0;
        h.d.eq = h.d.a == h.d.b ? 8w1 : 0;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
