// A varbit field takes the number of bits the parser computes.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> length; varbit<64> options; }
header tail_t { bit<8> a; }
struct headers_t { data_t d; tail_t t; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        bit<8> length = p.lookahead<bit<8>>();
        p.extract(h.d, (bit<32>)length * 8);
        p.extract(h.t);
        transition accept;
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.t.a = s.parser_error == error.HeaderTooShort ? 8w0xee : h.t.a + 1;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
