// Packets that end inside a header leave as they came: what was not extracted is payload.
#include <core.p4>
#include <v1model.p4>

header first_t { bit<8> a; }
header second_t { bit<16> b; }
struct headers_t { first_t f; second_t g; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.f); p.extract(h.g); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
