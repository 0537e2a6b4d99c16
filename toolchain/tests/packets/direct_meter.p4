// A direct meter: each entry has tokens of its own; a miss is green.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> key; bit<8> colour; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t meta, inout standard_metadata_t s) {
    direct_meter<bit<8>>(MeterType.packets) m;
    bit<8> colour = 0;
    action send() {
        m.read(colour);
        s.egress_spec = 1;
    }
    action miss() { s.egress_spec = 2; }
    table metered {
        key = { h.d.key: exact; }
        actions = { send; miss; }
        default_action = miss();
        meters = m;
    }
    apply {
        metered.apply();
        h.d.colour = colour;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
