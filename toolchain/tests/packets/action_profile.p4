// An action profile: entries refer to members, and several entries to the same one.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> key; bit<8> value; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action drop() { mark_to_drop(s); }
    action send(bit<9> port, bit<8> value) {
        s.egress_spec = port;
        h.d.value = value;
    }
    action_profile(8) ap;
    table exactly {
        key = { h.d.key: exact; }
        actions = { send; drop; }
        default_action = drop();
        implementation = ap;
    }
    apply { exactly.apply(); }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
