// Structs nest, copy as a whole, compare, and are built from lists and from named fields.
#include <core.p4>
#include <v1model.p4>

struct inner_t { bit<8> x; bit<8> y; }
struct outer_t { inner_t i; bit<8> z; }
header data_t { bit<8> a; bit<8> b; bit<8> c; bit<8> same; bit<8> sum; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        outer_t one = { { h.d.a, h.d.b }, h.d.c };
        outer_t two = { i = { x = 1, y = 2 }, z = 3 };
        h.d.same = one == two ? 8w1 : 0;
        two = one;
        one.i.x = 0;
        two.i.y = two.i.y + 1;
        h.d.a = one.i.x;
        h.d.b = two.i.y;
        h.d.c = two.z;
        h.d.sum = two.i.x + one.i.y;
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
