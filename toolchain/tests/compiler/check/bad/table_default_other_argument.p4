#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
control c(inout h_t h) {
    action d(in bit<8> x) {}
    table t {
        actions = { d(h.a); }
        default_action = d(h.b[7:0]);
    }
    apply {
        t.apply();
    }
}
