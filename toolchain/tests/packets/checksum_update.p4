// update_checksum after egress: csum16 over fields that are not whole 16-bit words too.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<4> a; bit<12> b; bit<8> c; bit<8> d; bit<16> sum; }
struct headers_t { data_t d; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
control Sum(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(h.d.isValid(), { h.d.a, h.d.b, h.d.c, h.d.d }, h.d.sum, HashAlgorithm.csum16);
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.c = h.d.c - 1; s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), Sum(), Emit()) main;
