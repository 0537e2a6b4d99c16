// t.apply().hit and .miss as conditions.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> hit; bit<8> miss; bit<8> runs; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action count() { h.d.runs = h.d.runs + 1; }
    table t {
        key = { h.d.a: exact; }
        actions = { count; NoAction; }
        const entries = { 1: count(); }
        default_action = NoAction();
    }
    table u {
        key = { h.d.a: exact; }
        actions = { count; NoAction; }
        const entries = { 2: count(); }
        default_action = NoAction();
    }
    apply {
        if (t.apply().hit) { h.d.hit = 1; } else { h.d.hit = 2; }
        if (!u.apply().hit && h.d.a != 7) { h.d.miss = 1; }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
