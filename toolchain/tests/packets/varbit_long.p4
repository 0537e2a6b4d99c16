// A varbit may be wider than any bit<W>: headers of in-band telemetry are.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> length; varbit<8032> options; }
header tail_t { bit<8> a; }
struct headers_t { data_t moved; data_t d; tail_t t; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        bit<16> length = p.lookahead<bit<16>>();
        p.extract(h.d, (bit<32>)length * 8);
        p.extract(h.t);
        transition accept;
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = s.parser_error == error.HeaderTooShort ? 9w2 : 1;
        h.moved = h.d;
        h.d.setInvalid();
        if (h.t.isValid()) {
            h.t.a = h.t.a + 1;
        }
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
