// select with ranges.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> port; bit<8> way; }
struct headers_t { data_t d; }
struct meta_t { bit<8> way; }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.d);
        transition select(h.d.port) {
            0..1023: low;
            5000..5999: middle;
            default: accept;
        }
    }
    state low { m.way = 1; transition accept; }
    state middle { m.way = 2; transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.d.way = m.way; s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
