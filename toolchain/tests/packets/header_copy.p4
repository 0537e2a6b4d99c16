// Assigning a header copies its validity too; headers compare by validity and fields.
#include <core.p4>
#include <v1model.p4>

header tag_t { bit<8> kind; bit<8> value; }
header flag_t { bit<8> equal; }
struct headers_t { tag_t first; tag_t second; tag_t third; flag_t flag; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.first);
        transition select(h.first.kind) { 2: second; default: accept; }
    }
    state second { p.extract(h.second); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.flag.setValid();
        h.flag.equal = h.first == h.second ? 8w1 : 0;
        h.third = h.first;
        h.third.value = 0x99;
        h.first = h.second;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
