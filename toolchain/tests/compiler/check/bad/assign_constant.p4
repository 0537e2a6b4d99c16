#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
const bit<8> k = 2;
control c(inout h_t h) {
    apply {
        k = 1;
    }
}
