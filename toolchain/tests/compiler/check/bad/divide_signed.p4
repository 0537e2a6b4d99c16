#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
control c(in int<8> x) {
    apply {
        bit<8> y = (bit<8>) (x / x);
    }
}
