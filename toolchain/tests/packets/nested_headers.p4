// Headers inside structs inside the headers struct; emit of a struct emits what is valid in it.
#include <core.p4>
#include <v1model.p4>

header tag_t { bit<8> v; }
struct pair_t { tag_t left; tag_t right; }
struct headers_t { tag_t first; pair_t pair; tag_t last; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.first);
        p.extract(h.pair.left);
        p.extract(h.last);
        transition accept;
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.first.v == 1) {
            h.pair.right.setValid();
            h.pair.right.v = h.pair.left.v + 1;
            h.pair.left.setInvalid();
        } else if (h.first.v == 2) {
            h.pair.right = h.pair.left;
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
