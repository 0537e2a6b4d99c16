// Tuples and structs as arguments; a generic struct.
#include <core.p4>
#include <v1model.p4>

struct pair<T> { T left; T right; }
header data_t { bit<8> a; bit<8> b; bit<8> c; }
#include "include/one_header.p4"

bit<8> total(in pair<bit<8>> p) { return p.left + p.right; }

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        pair<bit<8>> p = { h.d.a, h.d.b };
        tuple<bit<8>, bit<8>> t = { p.right, p.left };
        h.d.c = total(p) + t[0];
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
