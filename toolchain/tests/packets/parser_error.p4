// A failed extract or verify ends parsing, keeps what was read, and ingress sees the error.
#include <core.p4>
#include <v1model.p4>

error { WrongVersion }
header first_t { bit<8> version; bit<8> code; }
header second_t { bit<32> value; }
struct headers_t { first_t f; second_t s; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.f);
        verify(h.f.version == 1, error.WrongVersion);
        p.extract(h.s);
        transition accept;
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.f.setValid();
        if (s.parser_error == error.NoError) { h.f.code = 1; }
        if (s.parser_error == error.PacketTooShort) { h.f.code = 2; }
        if (s.parser_error == error.WrongVersion) { h.f.code = 3; }
        if (h.s.isValid()) { h.s.value = h.s.value + 1; }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
