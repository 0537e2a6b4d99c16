// One action in two tables, one after the other, each with entries of its own.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action add_to(bit<8> v) { h.d.result = h.d.result + v; }
    table first {
        key = { h.d.a: exact; }
        actions = { add_to; @defaultonly NoAction; }
        default_action = NoAction();
    }
    table second {
        key = { h.d.b: exact; h.d.result: exact; }
        actions = { add_to; @defaultonly NoAction; }
        default_action = NoAction();
    }
    apply { first.apply(); second.apply(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
