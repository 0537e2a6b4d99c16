// x[hi:lo] = v changes those bits and no others.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<16> a; bit<8> v; bit<128> wide; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.a[11:4] = h.d.v;
        h.d.a[0:0] = 1;
        h.d.wide[71:64] = h.d.v;
        h.d.wide[7:4] = h.d.v[3:0];
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
