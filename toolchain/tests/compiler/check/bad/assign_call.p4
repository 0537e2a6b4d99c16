#include <core.p4>
header h_t {
    bit<8> a;
    bit<16> b;
}
bit<8> f() { return 1; }
control c(inout h_t h) {
    apply {
        f() = 1;
    }
}
