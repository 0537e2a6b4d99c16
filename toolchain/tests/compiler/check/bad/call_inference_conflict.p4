#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
extern void f<T>(in T x, in T y);
control c(inout h_t h) {
    apply {
        f(h.a, h.b);
    }
}
