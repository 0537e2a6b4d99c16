// log_msg, assert and assume leave the packet alone when they hold.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        log_msg("a is {}", { h.d.a });
        assert(h.d.a < 0x80);
        assume(h.d.a != 0x7f);
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
