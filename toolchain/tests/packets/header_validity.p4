// setValid and setInvalid decide what the deparser emits; isValid reads it.
#include <core.p4>
#include <v1model.p4>

header tag_t { bit<8> kind; bit<8> value; }
struct headers_t { tag_t first; tag_t second; tag_t third; }
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
        if (h.second.isValid()) {
            h.second.setInvalid();
        } else {
            h.third.setValid();
            h.third.kind = 3;
            h.third.value = h.first.value;
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
