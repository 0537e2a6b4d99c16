#include <core.p4>
bit<8> f(out bit<8> y, in bool b) {
    bit<8> x;
    if (b) {
        x = 300;
        y = 1;
    }
    return x;
    y = 2;
}
parser p() {
    state start {
        transition select(8w1) {
            default: accept;
            1: reject;
        }
    }
    state unused {}
}
const bit<8> k = -1 + no_such;
