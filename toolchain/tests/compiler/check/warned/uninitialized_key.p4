#include <core.p4>
header h_t { bit<8> x; }
control c(inout h_t h, in bit<8> n) {
    bit<8> unset;
    bit<8> given;
    table t {
        key = { unset: exact; given: exact; n: exact; }
        actions = { NoAction; }
    }
    table u {
        key = { h.x: exact; }
        actions = { NoAction; }
    }
    apply {
        given = n;
        t.apply();
        h.setInvalid();
        u.apply();
    }
}
