// packet_length and ingress_port, as ingress sees them.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> length; bit<8> port; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.length = (bit<16>)s.packet_length;
        h.d.port = (bit<8>)s.ingress_port;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
