#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
control c(inout h_t h) {
    action a() {}
    action b(bit<8> x) { h.a = x; }
    table t {
        key = { h.a: exact; }
        key = { h.b: exact; }
        actions = { a; }
    }
    apply {
        t.apply();
    }
}
