// One lpm key beside exact ones: all exact keys must match.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> vrf; bit<16> dst; bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<8> v) { h.d.result = v; }
    table routes {
        key = { h.d.dst: lpm; h.d.vrf: exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
    }
    apply { routes.apply(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
