// lookahead reads without consuming; the packet must be long enough for it.
#include <core.p4>
#include <v1model.p4>

header short_t { bit<8> kind; bit<8> a; }
header long_t { bit<8> kind; bit<24> a; }
struct headers_t { short_t s; long_t l; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        transition select(p.lookahead<bit<8>>()) { 1: short; 2: long; default: accept; }
    }
    state short { p.extract(h.s); transition accept; }
    state long { p.extract(h.l); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.s.isValid()) { h.s.a = 0x55; }
        if (h.l.isValid()) { h.l.a = 0x777777; }
        s.egress_spec = s.parser_error == error.PacketTooShort ? 9w2 : 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
