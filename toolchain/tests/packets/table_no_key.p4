// A table without keys runs its default action; setdefault changes it.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action add_to(bit<8> v) { h.d.result = h.d.result + v; }
    table t {
        actions = { add_to; NoAction; }
        default_action = add_to(3);
    }
    apply { t.apply(); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
