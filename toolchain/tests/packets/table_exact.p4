// Exact keys, entries added at run time, action arguments, a default that drops.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> dst; bit<8> ttl; bit<32> big; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action drop() { mark_to_drop(s); }
    action forward(bit<9> port, bit<32> value) {
        s.egress_spec = port;
        h.d.ttl = h.d.ttl - 1;
        h.d.big = value;
    }
    table hosts {
        key = { h.d.dst: exact; }
        actions = { forward; drop; NoAction; }
        default_action = drop();
        size = 64;
    }
    apply { hosts.apply(); }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
