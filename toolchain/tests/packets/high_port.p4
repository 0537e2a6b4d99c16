// Ports are 9 bits: 300 in, 510 out.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> from; bit<16> to; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.from = (bit<16>)s.ingress_port;
        s.egress_spec = (bit<9>)h.d.to;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
