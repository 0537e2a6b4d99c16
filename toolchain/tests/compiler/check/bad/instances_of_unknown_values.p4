#include <core.p4>
control inner(inout bit<8> x)(bit<8> k) { apply { x = k; } }
control outer(inout bit<8> x)(bit<8> k) {
    inner(k + 1) fine;
    apply { fine.apply(x); }
}
control c(inout bit<8> x, in bit<8> y) {
    inner(y) wrong;
    apply { wrong.apply(x); @field_list(y) x = 1; }
}
struct meta_t { @field_list(1 + y) bit<8> a; }
