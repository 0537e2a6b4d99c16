// A select without a matching case ends parsing; as in BMv2, no error is reported.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> code; }
header more_t { bit<8> b; }
struct headers_t { data_t d; more_t e; }
struct meta_t { }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.d);
        transition select(h.d.a) { 1: more; 2: accept; }
    }
    state more { p.extract(h.e); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.code = s.parser_error == error.NoError ? 8w0 : 1;
        h.e.setInvalid();
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
