#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
control c(in bit<8> n) {
    apply {
        bit<(n)> x;
    }
}
