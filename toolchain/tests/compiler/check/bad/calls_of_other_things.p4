#include <core.p4>
header h_t { bit<8> a; }
header_union u_t { h_t one; }
void plain(in bit<8> x) { }
T same<T>(in T x) { return x; }
control c(inout h_t h, inout u_t u, inout h_t[2] s, inout bit<8> x) {
    action act() { }
    apply {
        (x + 1)();
        x();
        act<bit<8>>();
        plain<bit<8>>(1);
        same<void>(1);
        h.isValid(1);
        u.setValid();
        s.push_front(-1);
        x = x.minSizeInBits();
        act.minSizeInBits();
        h_t.minSizeInBytes(1);
    }
}
