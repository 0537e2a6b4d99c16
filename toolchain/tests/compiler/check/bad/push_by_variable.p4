#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
control c(inout h_t[4] s, in bit<8> n) {
    apply {
        s.push_front(n);
    }
}
