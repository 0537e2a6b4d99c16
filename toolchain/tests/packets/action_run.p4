// switch (t.apply().action_run) with fall-through and default.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action one() { }
    action two() { }
    action three() { }
    action four() { }
    table t {
        key = { h.d.a: exact; }
        actions = { one; two; three; four; }
        const entries = { 1: one(); 2: two(); 3: three(); }
        default_action = four();
    }
    apply {
        switch (t.apply().action_run) {
            one: { h.d.result = 1; }
            two:
            three: { h.d.result = 23; }
            default: { h.d.result = 0xdd; }
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
