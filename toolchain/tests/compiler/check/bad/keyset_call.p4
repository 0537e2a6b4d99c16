#include <core.p4>
bit<8> one() { return 1; }
parser p(in bit<8> x) {
    state start {
        transition select(x) {
            one(): accept;
            default: reject;
        }
    }
}
