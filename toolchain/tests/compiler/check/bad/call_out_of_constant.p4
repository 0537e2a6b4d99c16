#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
void f(out bit<8> x) { x = 1; }
control c(inout h_t h) {
    apply {
        f(5);
    }
}
