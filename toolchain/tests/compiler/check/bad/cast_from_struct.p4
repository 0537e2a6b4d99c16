#include <core.p4>
struct s {
    bit<8> a;
}
control c(inout s x) {
    apply {
        bit<8> y = (bit<8>) x;
    }
}
