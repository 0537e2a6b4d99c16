// verify_checksum (csum16) sets checksum_error where the sum is wrong.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> a; bit<16> b; bit<16> sum; bit<8> bad; }
struct headers_t { data_t d; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control Check(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum(h.d.a != 0, { h.d.a, h.d.b }, h.d.sum, HashAlgorithm.csum16);
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.bad = 7w0 ++ s.checksum_error; s.egress_spec = 1; }
}
V1Switch(Parse(), Check(), Work(), NoEgress(), NoCompute(), Emit()) main;
