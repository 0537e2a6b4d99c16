// A parser value set selects what the control plane put into it; an empty one matches nothing.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> way; }
struct headers_t { data_t d; }
struct meta_t { bit<8> way; }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    value_set<bit<8>>(4) special;
    state start {
        p.extract(h.d);
        transition select(h.d.a) {
            special: in_set;
            5: five;
            default: accept;
        }
    }
    state in_set { m.way = 1; transition accept; }
    state five { m.way = 2; transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.way = m.way; s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
