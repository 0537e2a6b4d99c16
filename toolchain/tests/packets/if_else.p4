// if and else if, nested, with a table in one branch.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<8> v) { h.d.result = v; }
    table t {
        key = { h.d.b: exact; }
        actions = { set; NoAction; }
        const entries = { 5: set(0x55); }
        default_action = NoAction();
    }
    apply {
        if (h.d.a == 1) {
            if (h.d.b > 3) {
                t.apply();
            } else {
                h.d.result = 1;
            }
        } else if (h.d.a == 2 || h.d.b == 0) {
            h.d.result = 2;
        } else {
            h.d.result = 3;
        }
        h.d.b = h.d.b + 1;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
