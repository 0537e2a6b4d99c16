// truncate() keeps the first bytes of the packet that leaves.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> keep; bit<8> a; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { truncate((bit<32>)h.d.keep); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
