// #define with and without arguments, #if, #ifdef, #undef, line continuation.
#include <core.p4>
#include <v1model.p4>

#define WIDTH 8
#define ADD(x, y) ((x) + (y))
#define TWICE(x) \
    ADD(x, x)
#if WIDTH > 4 && defined(ADD)
header data_t { bit<WIDTH> a; bit<WIDTH> b; bit<WIDTH> c; }
#else
#error "not here"
#endif
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.a = ADD(h.d.a, 2);
        h.d.b = TWICE(h.d.b);
#ifdef NEVER
        h.d.c = 1;
#elif WIDTH == 8
        h.d.c = 2;
#endif
#undef WIDTH
#ifndef WIDTH
        h.d.c = h.d.c + 0x10; /* a comment // in a comment */
#endif
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
