#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
control c(inout h_t h, in bit<8> n, in tuple<bit<8>, bit<8>> t) {
    apply {
        h.a = t[n];
    }
}
