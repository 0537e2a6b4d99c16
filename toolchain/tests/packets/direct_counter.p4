// A direct counter counts the hits of each entry.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets) hits;
    action note() { hits.count(); }
    table t {
        key = { h.d.a: exact; }
        actions = { note; NoAction; }
        default_action = NoAction();
        counters = hits;
    }
    apply { t.apply(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
