// Of the ternary entries that match, the one with the largest priority wins.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> a; bit<8> b; bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<8> v) { h.d.result = v; }
    table acl {
        key = { h.d.a: ternary; h.d.b: exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
    }
    apply { acl.apply(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
