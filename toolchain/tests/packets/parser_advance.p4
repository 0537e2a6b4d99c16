// advance skips bits without storing them: they are gone from the packet.
#include <core.p4>
#include <v1model.p4>

header count_t { bit<8> skip; }
header data_t { bit<8> a; }
struct headers_t { count_t c; data_t d; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.c);
        p.advance((bit<32>)h.c.skip << 3);
        p.extract(h.d);
        transition accept;
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
