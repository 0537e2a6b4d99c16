#include <core.p4>
@noWarn("unused")
parser p(in bit<8> x) {
    state start {
        transition select(x) {
            9 .. 3: reject;
            default: accept;
        }
    }
}
