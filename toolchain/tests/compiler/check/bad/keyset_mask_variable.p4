#include <core.p4>
parser p(in bit<8> x) {
    state start {
        transition select(x) {
            1 &&& x: accept;
            default: reject;
        }
    }
}
