// An action selector: the selector key's hash chooses a member of the group, hash modulo their number.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> key; bit<8> flow; bit<8> value; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action drop() { mark_to_drop(s); }
    action send(bit<8> value) {
        s.egress_spec = 1;
        h.d.value = value;
    }
    action_selector(HashAlgorithm.identity, 16, 8) ap;
    table spread {
        key = {
            h.d.key: ternary;
            h.d.flow: selector;
        }
        actions = { send; drop; }
        default_action = drop();
        implementation = ap;
    }
    apply { spread.apply(); }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
