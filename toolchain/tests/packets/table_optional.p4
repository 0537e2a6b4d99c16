// optional keys: a value or anything.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<8> v) { h.d.result = v; }
    table t {
        key = { h.d.a: optional; h.d.b: optional; }
        actions = { set; }
        const entries = {
            (1, 2): set(12);
            (1, _): set(10);
            (_, 2): set(2);
        }
        const default_action = set(0xff);
    }
    apply { t.apply(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
