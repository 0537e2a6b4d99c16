// update_checksum_with_payload adds the bytes behind the parsed headers, odd ones too.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> a; bit<16> sum; }
struct headers_t { data_t d; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control Sum(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum_with_payload(true, { h.d.a }, h.d.sum, HashAlgorithm.csum16);
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), Sum(), Emit()) main;
