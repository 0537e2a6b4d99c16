// return ends one control or action and no more.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> c; }
#include "include/one_header.p4"

control Inner(inout headers_t h) {
    apply {
        if (h.d.a == 1) { return; }
        h.d.b = 1;
    }
}

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Inner() inner;
    action maybe() {
        h.d.c = 1;
        if (h.d.a == 2) { return; }
        h.d.c = 2;
    }
    apply {
        s.egress_spec = 1;
        inner.apply(h);
        maybe();
        if (h.d.a == 3) {
            h.d.a = 0xaa;
            return;
        }
        h.d.a = 0xbb;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
