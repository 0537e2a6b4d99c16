#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
control c(inout h_t h) {
    bit<8> length = 1;
    apply {
        h.a = lenght;
    }
}
