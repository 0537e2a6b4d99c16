// Parser states compute: local variables, assignments, a loop over states.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> count; bit<16> total; }
header item_t { bit<8> v; }
struct headers_t { data_t d; item_t[4] items; }
struct meta_t { bit<16> total; }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    bit<8> left = 0;
    state start {
        m.total = 100;
        p.extract(h.d);
        left = h.d.count;
        transition next;
    }
    state next {
        transition select(left) { 0: accept; default: item; }
    }
    state item {
        p.extract(h.items.next);
        m.total = m.total + (bit<16>)h.items.last.v;
        left = left - 1;
        transition next;
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.total = m.total; s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
