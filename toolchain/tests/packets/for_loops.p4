// Counted for loops with break and continue (P4_16 1.2.5), in an action.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> n; bit<8> sum; bit<8> odd; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action sums() {
        bit<8> sum = 0;
        for (bit<8> i = 1; i <= 4; i = i + 1) {
            sum = sum + i;
        }
        h.d.sum = sum;
        bit<8> odd = 0;
        for (bit<8> k = 0; k < 8; k = k + 1) {
            if (k[0:0] == 0) { continue; }
            if (k > h.d.n) { break; }
            odd = odd + k;
        }
        h.d.odd = odd;
    }
    apply { sums(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
