// A header stack indexed at run time, read and written.
#include <core.p4>
#include <v1model.p4>

header which_t { bit<8> i; }
header tag_t { bit<8> v; }
struct headers_t { which_t w; tag_t[4] tags; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.w);
        p.extract(h.tags[0]);
        p.extract(h.tags[1]);
        p.extract(h.tags[2]);
        transition accept;
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.w.i < 3) {
            bit<8> v = h.tags[h.w.i].v;
            h.tags[h.w.i].v = v + 1;
            h.w.i = v;
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
