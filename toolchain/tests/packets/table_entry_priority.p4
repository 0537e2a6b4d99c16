// entries with explicit priorities: the smaller number wins, as largest_priority_wins is false.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<8> v) { h.d.result = v; }
    table t {
        key = { h.d.a: ternary; }
        actions = { set; }
        largest_priority_wins = false;
        entries = {
            const priority=20: _: set(1);
            const priority=10: 0x10 &&& 0xf0: set(2);
        }
        default_action = set(0);
    }
    apply { t.apply(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
