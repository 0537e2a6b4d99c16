// lookahead of a header type, and its fields further into the packet.
#include <core.p4>
#include <v1model.p4>

header pair_t { bit<4> high; bit<12> low; }
header data_t { bit<16> a; bit<16> seen; }
struct headers_t { data_t d; }
struct meta_t { bit<16> seen; }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        pair_t ahead = p.lookahead<pair_t>();
        m.seen = (bit<16>)ahead.low;
        transition select(ahead.high) { 0xa: take; default: accept; }
    }
    state take { p.extract(h.d); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.d.isValid()) { h.d.seen = m.seen; }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
