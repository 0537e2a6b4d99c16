// random() stays within its bounds, both included (its values are the switch's own).
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> low_ok; bit<8> high_ok; bit<8> fixed; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        bit<16> x;
        bit<8> y;
        random(x, 100, 110);
        random(y, 7, 7);
        h.d.low_ok = x >= 100 ? 8w1 : 0;
        h.d.high_ok = x <= 110 ? 8w1 : 0;
        h.d.fixed = y;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
