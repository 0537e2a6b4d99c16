// switch over a value: constants, fall-through, default.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> result; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        switch (h.d.a) {
            1: { h.d.result = 0x11; }
            2:
            0x80: { h.d.result = 0x22; }
            default: { h.d.result = 0xdd; }
        }
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
