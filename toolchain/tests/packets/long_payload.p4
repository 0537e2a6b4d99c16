// What the parser does not extract follows the headers unchanged, thousands of bytes of it.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; }
header added_t { bit<24> b; }
struct headers_t { data_t d; added_t e; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.e.setValid();
        h.e.b = 0x112233;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
