// Keys may be expressions: sums, slices, masks, conditions.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> a; bit<8> b; bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<8> v) { h.d.result = v; }
    table t {
        key = {
            h.d.b + 1: exact @name("next_b");
            h.d.a[11:4]: exact @name("middle");
            (h.d.a & 0x000f) == 3: exact @name("three");
        }
        actions = { set; NoAction; }
        default_action = NoAction();
    }
    apply { t.apply(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
