#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
void f(in bit<8> x) {}
control c(inout h_t h) {
    apply {
        f(x = 1, x = 2);
    }
}
