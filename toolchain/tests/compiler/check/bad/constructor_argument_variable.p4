#include <core.p4>
extern e {
    e(bit<8> n);
}
control c(in bit<8> x) {
    e(x) o;
    apply {}
}
