// Local variables of controls and blocks; a name in an inner block hides the outer one.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    bit<8> x = 1;
    apply {
        bit<8> y = x + h.d.a;
        {
            bit<8> x = 0x40;
            x = x + y;
            h.d.b = x;
        }
        x = x + 1;
        h.d.a = x;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
